package chart

import (
	"bytes"
	"context"
	"fmt"
	"image/color"
	"image/png"
	"math"
	"slices"

	"gonum.org/v1/plot/vg"
)

// A Picture is a chart that was drawn.
type Picture struct {
	PNG []byte

	// Missing are characters of the chart's texts for which the font has no glyph, at most ten. They are drawn as
	// boxes.
	Missing string
}

// Render draws a chart. The error is an [*Error] if the chart can't be drawn, or the cause of ctx's end.
func Render(ctx context.Context, c Chart) (*Picture, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	p, err := newPage(c.Width, c.Height)
	if err != nil {
		return nil, err
	}
	// Taken apart for fear of what the caller might do with its own.
	c.Labels, c.Series = slices.Clone(c.Labels), slices.Clone(c.Series)
	c.Title, c.XName, c.YName = p.legible(c.Title), p.legible(c.XName), p.legible(c.YName)
	for i, l := range c.Labels {
		c.Labels[i] = p.legible(l)
	}
	for i, s := range c.Series {
		c.Series[i].Name = p.legible(s.Name)
	}
	steps := []func(*Chart, *page){drawPie}
	if c.Type != Pie {
		f := layOut(&c, p)
		steps = []func(*Chart, *page){f.drawAxes}
		for i := range c.Series {
			steps = append(steps, func(c *Chart, p *page) { f.drawSeries(c, p, i) })
		}
		steps = append(steps, f.drawBaseline)
	}
	for _, step := range steps {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		step(&c, p)
	}
	var out bytes.Buffer
	if err := png.Encode(&out, p.image()); err != nil {
		return nil, fmt.Errorf("encoding the chart: %w", err)
	}
	return &Picture{PNG: out.Bytes(), Missing: string(p.missing)}, nil
}

// gap is the space between things, in points.
const gap = 8

// drawHeader writes the title and the legend at the top of the page and returns what is left below.
func drawHeader(c *Chart, p *page, names []string) vg.Rectangle {
	body := vg.Rectangle{
		Min: vg.Point{X: p.margin, Y: p.margin},
		Max: vg.Point{X: p.Max.X - p.margin, Y: p.Max.Y - p.margin},
	}
	width := body.Max.X - body.Min.X
	if c.Title != "" {
		style := p.style(16, true, inkStrong)
		most := 2
		if p.small() {
			most = 1
		}
		for _, line := range p.wrap(style, c.Title, width, most) {
			p.text(style, body.Min.X, body.Max.Y, left, top, line)
			body.Max.Y -= 20
		}
		body.Max.Y -= gap
		if len(names) == 0 && c.YName == "" {
			body.Max.Y -= gap // so that the topmost tick isn't taken for a part of the title
		}
	}
	if len(names) > 0 {
		body.Max.Y = p.drawLegend(c.Type, names, body.Min.X, body.Max.Y, width) - gap
	}
	return body
}

// drawLegend writes the names of series in rows, and returns where the next thing may begin.
func (p *page) drawLegend(kind Type, names []string, x0, y, width vg.Length) vg.Length {
	const (
		mark    = 10
		row     = 16
		between = 18
	)
	style := p.style(10.5, false, ink)
	x, rows := x0, 1
	for i, name := range names {
		name = p.shorten(style, name, min(width-mark-6, 220))
		w := mark + 6 + style.Width(name)
		if x > x0 && x+w > x0+width {
			if rows++; vg.Length(rows)*row > p.Max.Y/4 {
				break // the chart itself needs the room
			}
			x, y = x0, y-row
		}
		middle := y - row/2
		switch kind {
		case Line:
			p.stroke(paint(i), 3, vg.Point{X: x, Y: middle}, vg.Point{X: x + mark, Y: middle})
		case Scatter:
			p.dot(paint(i), x+mark/2, middle, mark/2-0.5)
		default:
			p.fill(paint(i), rect(x, middle-mark/2, x+mark, middle+mark/2)...)
		}
		p.text(style, x+mark+6, middle, left, center, name)
		x += w + between
	}
	return y - row
}

// A frame is where the points of a chart are: the axes and what is on them.
type frame struct {
	area     vg.Rectangle
	x, y     scale
	labels   labelling // of a category axis
	bins     [][]float64
	binEdges []float64
}

// A scale maps numbers to lengths.
type scale struct {
	lo, hi float64
	from   vg.Length
	to     vg.Length
	ticks  []tick
}

func (s *scale) at(v float64) vg.Length {
	return s.from + vg.Length((v-s.lo)/(s.hi-s.lo))*(s.to-s.from)
}

func (c *Chart) named() []string {
	var names []string
	for _, s := range c.Series {
		names = append(names, s.Name)
	}
	if len(names) == 1 {
		return nil
	}
	return names
}

// layOut divides the page among the parts of a chart with axes. It draws the header.
func layOut(c *Chart, p *page) *frame {
	if p.small() { // there is no room for all that
		c.XName, c.YName = "", ""
	}
	body := drawHeader(c, p, c.named())
	f := &frame{}
	xlo, xhi, ylo, yhi := c.extent()
	if c.Type == Hist {
		f.bin(c)
		ylo, yhi = 0, 0
		for _, counts := range f.bins {
			yhi = max(yhi, slices.Max(counts))
		}
		xlo, xhi = f.binEdges[0], f.binEdges[len(f.binEdges)-1]
	}
	tickStyle := p.style(10, false, ink)
	if c.YName != "" {
		body.Max.Y -= 24
	}
	if c.XName != "" {
		body.Min.Y += 20
	}
	n := max(2, int((body.Max.Y-body.Min.Y-30)/42))
	zero := c.Type == Bar || c.Type == Area || c.Type == Hist
	f.y.lo, f.y.hi = niceRange(ylo, yhi, n, zero)
	f.y.ticks = numberTicks(f.y.lo, f.y.hi, n)
	var widest vg.Length
	for _, t := range f.y.ticks {
		widest = max(widest, tickStyle.Width(t.label))
	}
	f.area = body
	f.area.Min.X += widest + gap
	f.area.Max.X -= 6
	width := f.area.Max.X - f.area.Min.X
	switch {
	case c.Type != Hist && c.Axis == Category:
		f.x.lo, f.x.hi = -0.5, float64(len(c.Labels))-0.5
		if c.Type != Bar {
			f.x.lo, f.x.hi = widen(0, float64(len(c.Labels)-1))
			if len(c.Labels) == 1 {
				f.x.lo, f.x.hi = -1, 1
			}
		}
		f.labels = p.layLabels(tickStyle, c.Labels, width/vg.Length(f.x.hi-f.x.lo), (body.Max.Y-body.Min.Y)/3)
		f.area.Min.Y += f.labels.height + gap
	default:
		f.x.lo, f.x.hi = widen(xlo, xhi)
		if c.Type == Scatter {
			room := (f.x.hi - f.x.lo) * 0.02
			f.x.lo, f.x.hi = f.x.lo-room, f.x.hi+room
		}
		n := max(2, int(width/84))
		ticks := numberTicks
		if c.Axis == Time && c.Type != Hist {
			ticks = timeTicks
		}
		f.x.ticks = ticks(f.x.lo, f.x.hi, n)
		f.area.Min.Y += 14 + gap
		if slices.ContainsFunc(f.x.ticks, func(t tick) bool { return lines(t.label) > 1 }) {
			f.area.Min.Y += 13
		}
	}
	f.x.from, f.x.to = f.area.Min.X, f.area.Max.X
	f.y.from, f.y.to = f.area.Min.Y, f.area.Max.Y
	return f
}

// extent returns the least and the greatest X and Y that are drawn.
func (c *Chart) extent() (xlo, xhi, ylo, yhi float64) {
	xlo, ylo = math.Inf(1), math.Inf(1)
	xhi, yhi = math.Inf(-1), math.Inf(-1)
	for _, s := range c.Series {
		for i, y := range s.Y {
			if math.IsNaN(y) {
				continue
			}
			ylo, yhi = math.Min(ylo, y), math.Max(yhi, y)
			if len(s.X) > i {
				xlo, xhi = math.Min(xlo, s.X[i]), math.Max(xhi, s.X[i])
			}
		}
	}
	return xlo, xhi, ylo, yhi
}

// bin counts the values of each series between common edges.
func (f *frame) bin(c *Chart) {
	_, _, lo, hi := c.extent()
	lo, hi = widen(lo, hi)
	most := 0
	for _, s := range c.Series {
		most = max(most, len(s.Y))
	}
	// Rice's rule, to steps that people count in.
	n := min(max(int(math.Ceil(2*math.Cbrt(float64(most)))), 5), 60)
	step := niceStep(hi-lo, n)
	first := math.Floor(lo/step + 1e-9)
	count := min(max(int(math.Ceil(hi/step-first-1e-9)), 1), 2*n+2)
	for i := range count + 1 {
		f.binEdges = append(f.binEdges, (first+float64(i))*step)
	}
	for _, s := range c.Series {
		counts := make([]float64, count)
		for _, v := range s.Y {
			if !math.IsNaN(v) {
				counts[min(max(int(v/step-first+1e-9), 0), count-1)]++
			}
		}
		f.bins = append(f.bins, counts)
	}
}

func (f *frame) drawAxes(c *Chart, p *page) {
	style := p.style(10, false, ink)
	for _, t := range f.y.ticks {
		y := p.snap(f.y.at(t.value))
		p.stroke(gridColor, 0.75, vg.Point{X: f.area.Min.X, Y: y}, vg.Point{X: f.area.Max.X, Y: y})
		p.text(style, f.area.Min.X-gap, y, right, center, t.label)
	}
	if c.YName != "" {
		name := p.shorten(style, c.YName, f.area.Max.X-p.margin)
		p.text(p.style(10, false, inkStrong), p.margin, f.area.Max.Y+18, left, center, name)
	}
	bottom := f.area.Min.Y - gap
	for _, t := range f.x.ticks {
		x := f.x.at(t.value)
		if c.Type == Scatter {
			at := p.snap(x)
			p.stroke(gridColor, 0.75, vg.Point{X: at, Y: f.area.Min.Y}, vg.Point{X: at, Y: f.area.Max.Y})
		} else {
			p.stroke(axisColor, 0.75, vg.Point{X: x, Y: f.area.Min.Y}, vg.Point{X: x, Y: f.area.Min.Y - 4})
		}
		for i, line := range splitLines(t.label) {
			w := style.Width(line) / 2
			at := min(max(x, w+4), p.Max.X-w-4)
			p.text(style, at, bottom-vg.Length(13*i), middle, top, line)
		}
	}
	f.labels.draw(p, style, func(i int) vg.Length { return f.x.at(float64(i)) }, bottom)
	if c.XName != "" {
		name := p.shorten(style, c.XName, f.area.Max.X-f.area.Min.X)
		p.text(p.style(10, false, inkStrong), (f.area.Min.X+f.area.Max.X)/2, p.margin, middle, baseline, name)
	}
}

// drawBaseline draws the line from which bars and areas grow, over them.
func (f *frame) drawBaseline(_ *Chart, p *page) {
	y := f.area.Min.Y
	if f.y.lo < 0 && f.y.hi >= 0 {
		y = f.y.at(0)
	}
	y = p.snap(y)
	p.stroke(axisColor, 1, vg.Point{X: f.area.Min.X, Y: y}, vg.Point{X: f.area.Max.X, Y: y})
}

func (f *frame) drawSeries(c *Chart, p *page, i int) {
	s := c.Series[i]
	switch c.Type {
	case Bar:
		f.drawBars(p, s, i, len(c.Series))
	case Hist:
		f.drawBins(p, i)
	case Scatter:
		f.drawPoints(p, s, i)
	default:
		f.drawLine(p, s, i, c.Type == Area)
	}
}

func (f *frame) drawBars(p *page, s Series, i, of int) {
	slot := f.x.at(1) - f.x.at(0)
	group := slot * 0.72
	if of == 1 {
		group = min(slot*0.66, 80)
	}
	group = min(group, 120*vg.Length(of))
	w := group / vg.Length(of)
	air := min(w*0.08, 1.5)
	for k, y := range s.Y {
		if math.IsNaN(y) {
			continue
		}
		x := f.x.at(s.X[k]) - group/2 + vg.Length(i)*w
		p.fill(paint(i), rect(x+air, f.y.at(0), x+w-air, f.y.at(y))...)
	}
}

func (f *frame) drawBins(p *page, i int) {
	fillColor := paint(i)
	if len(f.bins) > 1 {
		fillColor = translucent(fillColor, 0.5)
	}
	for k, count := range f.bins[i] {
		if count == 0 {
			continue
		}
		lo, hi := f.x.at(f.binEdges[k]), f.x.at(f.binEdges[k+1])
		air := min((hi-lo)*0.03, 0.75)
		p.fill(fillColor, rect(lo+air, f.y.at(0), hi-air, f.y.at(count))...)
	}
}

func (f *frame) drawPoints(p *page, s Series, i int) {
	radius, alpha := vg.Length(3.2), 0.75
	switch {
	case len(s.Y) > 5000:
		radius, alpha = 1.6, 0.45
	case len(s.Y) > 500:
		radius, alpha = 2.2, 0.6
	}
	stamp := p.newStamp(translucent(paint(i), alpha), radius)
	for k, y := range s.Y {
		if !math.IsNaN(y) {
			stamp.at(f.x.at(s.X[k]), f.y.at(y))
		}
	}
}

// drawLine draws the parts of a line between its gaps; with area, also what is between it and zero.
func (f *frame) drawLine(p *page, s Series, i int, area bool) {
	var part []vg.Point
	flush := func() {
		if area {
			p.fillBelow(translucent(paint(i), 0.22), f.y.at(min(max(0, f.y.lo), f.y.hi)), part)
		}
		if len(part) == 1 {
			p.dot(paint(i), part[0].X, part[0].Y, 2.6)
		}
		p.curve(paint(i), 2, p.thin(part))
		part = part[:0]
	}
	for k, y := range s.Y {
		if math.IsNaN(y) {
			flush()
			continue
		}
		part = append(part, vg.Point{X: f.x.at(s.X[k]), Y: f.y.at(y)})
	}
	flush()
	if area || len(s.Y) > maxMarked {
		return
	}
	for k, y := range s.Y {
		if !math.IsNaN(y) {
			p.dot(color.White, f.x.at(s.X[k]), f.y.at(y), 3.6)
			p.dot(paint(i), f.x.at(s.X[k]), f.y.at(y), 2.6)
		}
	}
}

// maxMarked is up to how many points of a line are marked as such.
const maxMarked = 40
