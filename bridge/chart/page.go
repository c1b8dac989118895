package chart

import (
	"cmp"
	"fmt"
	"image"
	"image/color"
	stddraw "image/draw"
	"math"
	"slices"
	"strings"

	"codeberg.org/go-fonts/liberation/liberationsansbold"
	"codeberg.org/go-fonts/liberation/liberationsansregular"
	xfont "golang.org/x/image/font"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/font/sfnt"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// The colours of everything but the series.
var (
	inkStrong = color.NRGBA{0x1f, 0x29, 0x37, 0xff}
	ink       = color.NRGBA{0x4b, 0x55, 0x63, 0xff}
	gridColor = color.NRGBA{0xe5, 0xe7, 0xeb, 0xff}
	axisColor = color.NRGBA{0x9c, 0xa3, 0xaf, 0xff}
)

// palette are the colours of series. Neighbours differ in lightness too, for those who see few colours.
var palette = []color.NRGBA{
	{0x25, 0x63, 0xeb, 0xff}, // blue
	{0xf5, 0x9e, 0x0b, 0xff}, // amber
	{0x0f, 0x9d, 0x76, 0xff}, // green
	{0xe1, 0x48, 0x4d, 0xff}, // red
	{0x8b, 0x5c, 0xf6, 0xff}, // violet
	{0x22, 0xb8, 0xcf, 0xff}, // cyan
	{0xd9, 0x46, 0x9b, 0xff}, // pink
	{0x7a, 0x5c, 0x3e, 0xff}, // brown
	{0x84, 0xb8, 0x1a, 0xff}, // lime
	{0x64, 0x74, 0x8b, 0xff}, // slate
}

// paint is the colour of the series of an index; the second ten are lighter.
func paint(i int) color.NRGBA {
	c := palette[i%len(palette)]
	if i/len(palette)%2 == 1 {
		lighter := func(v uint8) uint8 { return uint8((int(v) + 0xff) / 2) }
		c = color.NRGBA{lighter(c.R), lighter(c.G), lighter(c.B), c.A}
	}
	return c
}

func translucent(c color.NRGBA, alpha float64) color.NRGBA {
	c.A = uint8(alpha * 0xff)
	return c
}

// A page is what a chart is drawn on. Lengths are in points from its lower left corner.
type page struct {
	draw.Canvas
	canvas  *vgimg.Canvas
	margin  vg.Length
	handler text.Plain
	regular *sfnt.Font
	glyphs  sfnt.Buffer
	missing []rune
}

const typeface = "Liberation"

func newPage(width, height float64) (*page, error) {
	p := &page{canvas: vgimg.NewWith(
		vgimg.UseWH(vg.Length(width)*vg.Inch, vg.Length(height)*vg.Inch),
		vgimg.UseDPI(dpi),
		vgimg.UseBackgroundColor(color.White),
	)}
	p.Canvas = draw.New(p.canvas)
	p.margin = 18
	if p.small() {
		p.margin = 8
	}
	var faces font.Collection
	for _, f := range []struct {
		weight xfont.Weight
		data   []byte
	}{{xfont.WeightNormal, liberationsansregular.TTF}, {xfont.WeightBold, liberationsansbold.TTF}} {
		parsed, err := opentype.Parse(f.data)
		if err != nil {
			return nil, fmt.Errorf("the charts' font: %w", err)
		}
		if f.weight == xfont.WeightNormal {
			p.regular = parsed
		}
		faces = append(faces, font.Face{Font: font.Font{Typeface: typeface, Variant: "Sans", Weight: f.weight}, Face: parsed})
	}
	p.handler = text.Plain{Fonts: font.NewCache(faces)}
	return p, nil
}

// small reports whether the page has no room for more than what must be there.
func (p *page) small() bool { return p.Max.Y < 3*vg.Inch }

func (p *page) image() image.Image { return p.canvas.Image() }

// maxMissing bounds how many characters without a glyph are noted.
const maxMissing = 10

// legible returns a text as it can be written, with boxes for the characters that can't be, which it notes.
func (p *page) legible(s string) string {
	return strings.Map(func(r rune) rune {
		if i, err := p.regular.GlyphIndex(&p.glyphs, r); err == nil && i != 0 {
			return r
		}
		if len(p.missing) < maxMissing && !slices.Contains(p.missing, r) {
			p.missing = append(p.missing, r)
		}
		return '□'
	}, oneLine(s))
}

func (p *page) style(size float64, bold bool, c color.Color) text.Style {
	f := font.Font{Typeface: typeface, Variant: "Sans", Size: font.Length(size)}
	if bold {
		f.Weight = xfont.WeightBold
	}
	return text.Style{Color: c, Font: f, Handler: p.handler}
}

// Where a text is, seen from the point at which it is written.
const (
	left   = draw.XLeft
	middle = draw.XCenter
	right  = draw.XRight

	top      = draw.YTop
	center   = draw.YCenter
	baseline = draw.YBottom
)

func (p *page) text(style text.Style, x, y vg.Length, h draw.XAlignment, v draw.YAlignment, s string) {
	style.XAlign, style.YAlign = h, v
	p.FillText(style, vg.Point{X: x, Y: y}, s)
}

// shorten cuts a text so that it isn't wider than width.
func (p *page) shorten(style text.Style, s string, width vg.Length) string {
	if style.Width(s) <= width {
		return s
	}
	runes := []rune(s)
	lo, hi := 0, len(runes) // the longest start that fits has at least lo and fewer than hi runes
	for lo+1 < hi {
		if m := (lo + hi) / 2; style.Width(string(runes[:m])+"…") <= width {
			lo = m
		} else {
			hi = m
		}
	}
	return strings.TrimRight(string(runes[:lo]), " ,.;:-") + "…"
}

// wrap divides a text into lines no wider than width. What doesn't fit in the last one is cut.
func (p *page) wrap(style text.Style, s string, width vg.Length, most int) []string {
	var out []string
	line := ""
	words := strings.Fields(s)
	for i, word := range words {
		longer := strings.TrimSpace(line + " " + word)
		if line == "" || style.Width(longer) <= width {
			line = longer
			continue
		}
		if len(out) == most-1 {
			line = strings.Join(append([]string{line}, words[i:]...), " ")
			break
		}
		out = append(out, p.shorten(style, line, width))
		line = word
	}
	return append(out, p.shorten(style, line, width))
}

func lines(s string) int { return strings.Count(s, "\n") + 1 }

func splitLines(s string) []string { return strings.Split(s, "\n") }

// snap moves a length to the middle of a pixel, so that a thin straight line there is sharp.
func (p *page) snap(v vg.Length) vg.Length {
	const pixel = vg.Inch / dpi
	return (vg.Length(math.Floor(float64(v/pixel))) + 0.5) * pixel
}

func rect(x0, y0, x1, y1 vg.Length) []vg.Point {
	return []vg.Point{{X: x0, Y: y0}, {X: x1, Y: y0}, {X: x1, Y: y1}, {X: x0, Y: y1}}
}

func (p *page) fill(c color.Color, outline ...vg.Point) { p.FillPolygon(c, outline) }

func (p *page) stroke(c color.Color, width vg.Length, points ...vg.Point) {
	if len(points) > 1 {
		p.StrokeLines(draw.LineStyle{Color: c, Width: width}, points)
	}
}

// curve draws a line through points in short pieces, see the package comment. A piece begins with the last segment of
// the one before, so that the corner between them is a corner.
func (p *page) curve(c color.Color, width vg.Length, points []vg.Point) {
	const piece = 16
	for len(points) > piece {
		p.stroke(c, width, points[:piece]...)
		points = points[piece-2:]
	}
	p.stroke(c, width, points...)
}

// fillBelow paints what is between a line that goes from left to right and a level, column by column.
func (p *page) fillBelow(c color.NRGBA, level vg.Length, points []vg.Point) {
	img := p.canvas.Image()
	height := float64(img.Bounds().Dy())
	base := height - level.Dots(dpi)
	for i := 1; i < len(points); i++ {
		x0, y0 := points[i-1].X.Dots(dpi), height-points[i-1].Y.Dots(dpi)
		x1, y1 := points[i].X.Dots(dpi), height-points[i].Y.Dots(dpi)
		// The columns whose middle is between the points; none is painted twice.
		for x := math.Ceil(x0 - 0.5); x < x1-0.5; x++ {
			y := y0 + (y1-y0)*(x+0.5-x0)/(x1-x0)
			from, to := min(y, base), max(y, base)
			for row := math.Floor(from); row < to; row++ {
				covered := min(row+1, to) - max(row, from)
				blend(img, int(x), int(row), c, covered)
			}
		}
	}
}

// blend paints a part of a pixel.
func blend(img stddraw.Image, x, y int, c color.NRGBA, part float64) {
	if !(image.Point{x, y}).In(img.Bounds()) {
		return
	}
	alpha := float64(c.A) / 0xff * part
	r, g, b, _ := img.At(x, y).RGBA()
	mix := func(below uint32, above uint8) uint8 {
		return uint8(float64(below>>8)*(1-alpha) + float64(above)*alpha + 0.5)
	}
	img.Set(x, y, color.RGBA{mix(r, c.R), mix(g, c.G), mix(b, c.B), 0xff})
}

func (p *page) dot(c color.Color, x, y, radius vg.Length) {
	p.DrawGlyphNoClip(draw.GlyphStyle{Color: c, Radius: radius, Shape: draw.CircleGlyph{}}, vg.Point{X: x, Y: y})
}

// thin drops points of a line that goes from left to right where many share a column of pixels.
func (p *page) thin(points []vg.Point) []vg.Point {
	const column = vg.Inch / dpi
	if len(points) < 4*int(p.Max.X/column) || !slices.IsSortedFunc(points, func(a, b vg.Point) int { return cmp.Compare(a.X, b.X) }) {
		return points
	}
	var out []vg.Point
	for i := 0; i < len(points); {
		end, lowest, highest := i, i, i
		for ; end < len(points) && int(points[end].X/column) == int(points[i].X/column); end++ {
			if points[end].Y < points[lowest].Y {
				lowest = end
			}
			if points[end].Y > points[highest].Y {
				highest = end
			}
		}
		keep := []int{i, lowest, highest, end - 1}
		slices.Sort(keep)
		for _, k := range slices.Compact(keep) {
			out = append(out, points[k])
		}
		i = end
	}
	return out
}

// A stamp is one point of a scatter plot, to be copied.
type stamp struct {
	page   *page
	dst    stddraw.Image
	paint  *image.Uniform
	mask   *image.Alpha
	radius float64 // in pixels
}

func (p *page) newStamp(c color.NRGBA, radius vg.Length) *stamp {
	s := &stamp{page: p, dst: p.canvas.Image(), paint: image.NewUniform(c), radius: radius.Dots(dpi)}
	size := 2*int(math.Ceil(s.radius)) + 1
	s.mask = image.NewAlpha(image.Rect(0, 0, size, size))
	const parts = 8 // of a pixel, in each direction
	mid := float64(size) / 2
	for y := range size {
		for x := range size {
			inside := 0
			for k := range parts * parts {
				dx := float64(x) + (float64(k%parts)+0.5)/parts - mid
				dy := float64(y) + (float64(k/parts)+0.5)/parts - mid
				if dx*dx+dy*dy <= s.radius*s.radius {
					inside++
				}
			}
			s.mask.SetAlpha(x, y, color.Alpha{uint8(inside * 0xff / (parts * parts))})
		}
	}
	return s
}

func (s *stamp) at(x, y vg.Length) {
	half := s.mask.Rect.Dx() / 2
	at := image.Pt(int(x.Dots(dpi))-half, s.dst.Bounds().Dy()-1-int(y.Dots(dpi))-half)
	stddraw.DrawMask(s.dst, s.mask.Rect.Add(at), s.paint, image.Point{}, s.mask, image.Point{}, stddraw.Over)
}

// A labelling is how the labels of categories are written.
type labelling struct {
	texts  [][]string // the lines of each; none where it is left out
	turned bool       // by 45°
	height vg.Length
}

// layLabels finds the most readable way in which labels fit: in one line, in several, turned, or not all of them.
// slot is the room that each has, and height the most that they may take together.
func (p *page) layLabels(style text.Style, labels []string, slot, height vg.Length) labelling {
	const (
		line   = 13
		air    = 8
		turned = 16 // what a label needs when it is turned
	)
	var l labelling
	if slot >= 34 {
		for _, label := range labels {
			lines := p.wrap(style, label, slot-air, 3)
			if joined := strings.Join(lines, " "); joined != label && slot < 90 {
				lines = nil // something was cut
			}
			if lines == nil {
				break
			}
			l.texts = append(l.texts, lines)
			l.height = max(l.height, vg.Length(len(lines))*line)
		}
		if len(l.texts) == len(labels) {
			return l
		}
	}
	// Short ones, such as years: every so many, in one line.
	every := max(1, int(math.Ceil(float64(turned/slot))))
	var widest vg.Length
	for i := 0; i < len(labels); i += every {
		widest = max(widest, style.Width(labels[i]))
	}
	l = labelling{texts: make([][]string, len(labels))}
	if flat := max(1, int(math.Ceil(float64((widest+air)/slot)))); widest <= 40 || flat == 1 {
		for i := 0; i < len(labels); i += flat {
			l.texts[i] = []string{labels[i]}
		}
		l.height = line
		return l
	}
	l.turned = true
	room := min(height*math.Sqrt2, 150)
	for i := 0; i < len(labels); i += every {
		text := p.shorten(style, labels[i], room)
		l.texts[i] = []string{text}
		l.height = max(l.height, style.Width(text)/math.Sqrt2+line/2)
	}
	return l
}

func (l *labelling) draw(p *page, style text.Style, x func(int) vg.Length, y vg.Length) {
	for i, lines := range l.texts {
		for k, line := range lines {
			if l.turned {
				style.Rotation = 0
				line = p.shorten(style, line, (x(i)-4)*math.Sqrt2)
				style.Rotation = math.Pi / 4
				p.text(style, x(i)+4, y, right, top, line)
				continue
			}
			at := x(i)
			w := style.Width(line) / 2
			at = min(max(at, w+2), p.Max.X-w-2)
			p.text(style, at, y-vg.Length(13*k), middle, top, line)
		}
	}
}
