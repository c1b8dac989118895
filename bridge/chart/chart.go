package chart

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The limits of a [Chart].
const (
	MaxPoints = 100_000 // of all series together
	MaxSeries = 20
	MaxBars   = 5_000  // of all series together
	MaxLoose  = 10_000 // points of a line whose X go back and forth
	MaxLabels = 10_000 // categories
	MaxWidth  = 27.0   // inches; 3,888 pixels
	MaxHeight = 20.0   // inches; 2,880 pixels
	MinWidth  = 2.0
	MinHeight = 2.0

	maxText  = 500   // bytes of a title, a name or a label
	maxValue = 1e150 // so that no difference overflows
)

// dpi is how many pixels an inch has.
const dpi = 144

// A Type says how a chart is drawn.
type Type string

const (
	Bar     Type = "bar"
	Line    Type = "line" // in the order of the points
	Scatter Type = "scatter"
	Area    Type = "area" // wants X in ascending order
	Pie     Type = "pie"
	Hist    Type = "hist" // of the values Y; there are no X
)

// An Axis says what the X of a series are.
type Axis string

const (
	Number   Axis = "number"
	Time     Axis = "time"     // seconds since 1970; a day has 86,400 of them, and times are shown without a zone
	Category Axis = "category" // indexes into Labels
)

// A Chart is what is to be drawn.
type Chart struct {
	Type   Type
	Title  string   // may be empty
	XName  string   // what X and Y are, written along the axes; may be empty
	YName  string   //
	Width  float64  // in inches
	Height float64  // in inches
	Axis   Axis     // of bar, line, scatter and area; bars and pies want Category
	Labels []string // the categories, also of a pie
	Series []Series // one, for a pie
}

// A Series is one line, colour of bars, or cloud of points.
type Series struct {
	Name string
	X, Y []float64 // as many of one as of the other. Where a Y is NaN there is a gap.
}

// An Error says what is wrong with a chart. It is for who asked for the chart to read.
type Error struct{ message string }

func (e *Error) Error() string { return e.message }

func errorf(format string, args ...any) error { return &Error{fmt.Sprintf(format, args...)} }

// Check reports what keeps a chart from being drawn, as an [*Error].
func (c *Chart) Check() error {
	switch c.Type {
	case Bar, Line, Scatter, Area, Pie, Hist:
	default:
		return errorf("chart type %q is none of bar, line, scatter, area, pie, hist", clip(string(c.Type), 40))
	}
	if !(c.Width >= MinWidth && c.Width <= MaxWidth && c.Height >= MinHeight && c.Height <= MaxHeight) {
		return errorf("a chart of %v by %v inches can't be drawn: width is %v to %v, height %v to %v", c.Width, c.Height, MinWidth, MaxWidth, MinHeight, MaxHeight)
	}
	switch {
	case len(c.Series) == 0:
		return errorf("there is nothing to draw: no series")
	case len(c.Series) > MaxSeries:
		return errorf("%d series can't be told apart: at most %d", len(c.Series), MaxSeries)
	case c.Type == Pie && len(c.Series) > 1:
		return errorf("a pie has one series, not %d", len(c.Series))
	case len(c.Labels) > MaxLabels:
		return errorf("%d categories are too many: at most %d; group them", len(c.Labels), MaxLabels)
	}
	if err := c.checkAxis(); err != nil {
		return err
	}
	if err := c.checkTexts(); err != nil {
		return err
	}
	return c.checkPoints()
}

func (c *Chart) checkAxis() error {
	switch {
	case c.Type == Hist:
		return nil
	case c.Type == Bar || c.Type == Pie:
		if c.Axis != Category {
			return errorf("a %s wants categories, not the axis %q", c.Type, clip(string(c.Axis), 40))
		}
	case c.Axis != Number && c.Axis != Time && c.Axis != Category:
		return errorf("axis %q is none of number, time, category", clip(string(c.Axis), 40))
	}
	if c.Axis == Category && len(c.Labels) == 0 {
		return errorf("there is nothing to draw: no categories")
	}
	return nil
}

func (c *Chart) checkTexts() error {
	check := func(what, text string) error {
		if len(text) > maxText {
			return errorf("%s has %d bytes, above the limit of %d: %s", what, len(text), maxText, clip(text, 60))
		}
		if !utf8.ValidString(text) {
			return errorf("%s is not UTF-8: %q", what, clip(text, 60))
		}
		return nil
	}
	for _, t := range []struct{ what, text string }{{"the title", c.Title}, {"the name of x", c.XName}, {"the name of y", c.YName}} {
		if err := check(t.what, t.text); err != nil {
			return err
		}
	}
	for _, l := range c.Labels {
		if err := check("a label", l); err != nil {
			return err
		}
	}
	for _, s := range c.Series {
		if err := check("the name of a series", s.Name); err != nil {
			return err
		}
	}
	return nil
}

func (c *Chart) checkPoints() error {
	points, drawn := 0, 0
	sum := 0.0
	for _, s := range c.Series {
		if c.Type != Hist && len(s.X) != len(s.Y) {
			return errorf("series %q has %d x and %d y", clip(s.Name, 60), len(s.X), len(s.Y))
		}
		if points += len(s.Y); points > MaxPoints {
			return errorf("more than %d points: aggregate them, or draw a part", MaxPoints)
		}
		for i, y := range s.Y {
			if math.IsNaN(y) {
				continue
			}
			if math.Abs(y) > maxValue {
				return errorf("series %q has the value %v, which is too large to be drawn", clip(s.Name, 60), y)
			}
			if c.Type == Pie && y < 0 {
				return errorf("a pie can't show the negative value %v", y)
			}
			sum += y
			drawn++
			if c.Type == Hist {
				continue
			}
			x := s.X[i]
			switch {
			case math.IsNaN(x) || math.Abs(x) > maxValue || c.Axis == Time && math.Abs(x) > maxTime:
				return errorf("series %q has an x of %v, which can't be drawn", clip(s.Name, 60), x)
			case c.Axis == Category && !(x >= 0 && x < float64(len(c.Labels)) && x == math.Trunc(x)):
				return errorf("series %q has the category %v of %d", clip(s.Name, 60), x, len(c.Labels))
			}
		}
	}
	for _, s := range c.Series {
		if sorted := slices.IsSorted(s.X); !sorted && (c.Type == Area || c.Type == Line && len(s.X) > MaxLoose) {
			return errorf("the x of series %q go back and forth: sort the rows by x", clip(s.Name, 60))
		}
	}
	switch {
	case drawn == 0:
		return errorf("there is nothing to draw: no values")
	case c.Type == Pie && sum <= 0:
		return errorf("a pie of zeros can't be drawn")
	case c.Type == Bar && len(c.Labels)*len(c.Series) > MaxBars:
		return errorf("%d bars can't be told apart: at most %d; take the largest, or draw a hist or a line", len(c.Labels)*len(c.Series), MaxBars)
	}
	return nil
}

// oneLine returns text as it is written into a chart.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp) {
			return ' '
		}
		if unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, text)
	return strings.Join(strings.Fields(text), " ")
}

// clip returns the first n bytes of a text, at the border of a character.
func clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "…"
}
