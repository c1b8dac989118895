package chart

import (
	"cmp"
	"fmt"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot/vg"
)

// maxSlices is how many slices of a pie are shown; the smallest ones beyond share the last.
const maxSlices = 10

// A slice is a piece of a pie.
type slice struct {
	label string
	value float64
}

// pieces returns the slices of a pie in their order, and what they add up to.
func (c *Chart) pieces() (pieces []slice, sum float64) {
	s := c.Series[0]
	var all []slice
	for i, y := range s.Y {
		if !math.IsNaN(y) && y > 0 {
			all = append(all, slice{c.Labels[int(s.X[i])], y})
			sum += y
		}
	}
	if len(all) <= maxSlices {
		return all, sum
	}
	bySize := slices.Clone(all)
	slices.SortStableFunc(bySize, func(a, b slice) int { return cmp.Compare(b.value, a.value) })
	least := bySize[maxSlices-2].value
	ties := 0 // how many of exactly that size are shown
	for _, piece := range bySize[:maxSlices-1] {
		if piece.value == least {
			ties++
		}
	}
	rest := slice{label: fmt.Sprintf("%d others", len(all)-maxSlices+1)}
	for _, piece := range all {
		switch {
		case piece.value > least, piece.value == least && ties > 0:
			if piece.value == least {
				ties--
			}
			pieces = append(pieces, piece)
		default:
			rest.value += piece.value
		}
	}
	return append(pieces, rest), sum
}

// drawPie draws a pie and, beside it, what its slices are.
func drawPie(c *Chart, p *page) {
	body := drawHeader(c, p, nil)
	pieces, sum := c.pieces()
	const row = 22
	style := p.style(11, false, ink)
	strong := p.style(11, true, inkStrong)
	width, height := body.Max.X-body.Min.X, body.Max.Y-body.Min.Y
	var names, values vg.Length
	texts := make([]string, len(pieces))
	for i, piece := range pieces {
		texts[i] = fmt.Sprintf("%s  (%s)", percent(piece.value/sum), formatValue(piece.value))
		names = max(names, style.Width(piece.label))
		values = max(values, strong.Width(texts[i]))
	}
	names = min(names, max(width*0.5-values-50, 40))
	list := 18 + names + 16 + values
	radius := max(min(height, width-list-30)/2-10, 20)
	at := vg.Point{X: body.Min.X + max((width-list-30-2*radius)/2, 0) + radius, Y: (body.Min.Y + body.Max.Y) / 2}

	angle := math.Pi / 2
	for i, piece := range pieces {
		sweep := -2 * math.Pi * piece.value / sum
		var outline vg.Path
		outline.Move(at)
		outline.Arc(at, radius, angle, sweep)
		outline.Close()
		p.SetColor(paint(i))
		p.Fill(outline)
		angle += sweep
	}
	angle = math.Pi / 2
	for i, piece := range pieces {
		sweep := -2 * math.Pi * piece.value / sum
		if len(pieces) > 1 {
			p.stroke(color.White, 1.5, at, vg.Point{X: at.X + radius*vg.Length(math.Cos(angle)), Y: at.Y + radius*vg.Length(math.Sin(angle))})
		}
		if share := piece.value / sum; share >= 0.05 && radius > 60 {
			mid := angle + sweep/2
			r := radius * 0.72
			if len(pieces) == 1 {
				r = 0
			}
			p.text(p.style(11, true, contrast(paint(i))), at.X+r*vg.Length(math.Cos(mid)), at.Y+r*vg.Length(math.Sin(mid)), middle, center, percent(share))
		}
		angle += sweep
	}

	x := at.X + radius + 30
	y := at.Y + row*vg.Length(len(pieces))/2 - row/2
	for i, piece := range pieces {
		p.fill(paint(i), rect(x, y-5, x+10, y+5)...)
		p.text(style, x+18, y, left, center, p.shorten(style, piece.label, names))
		p.text(strong, x+18+names+16, y, left, center, texts[i])
		y -= row
	}
}

// percent writes a share, of which 1 is all.
func percent(share float64) string {
	switch {
	case share < 0.001:
		return "<0.1%"
	case share < 0.1:
		return fmt.Sprintf("%.1f%%", 100*share)
	}
	return fmt.Sprintf("%.0f%%", 100*share)
}

// contrast is the colour of text on c.
func contrast(c color.NRGBA) color.NRGBA {
	if 299*int(c.R)+587*int(c.G)+114*int(c.B) > 150_000 {
		return inkStrong
	}
	return color.NRGBA{0xff, 0xff, 0xff, 0xff}
}
