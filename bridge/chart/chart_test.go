package chart

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var out = flag.String("out", "", "also write the charts of TestRender into this `directory`, to look at them")

var random = rand.New(rand.NewPCG(1, 2))

// indexes returns 0, 1, …, n-1.
func indexes(n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = float64(i)
	}
	return x
}

func wave(n int, noise float64) []float64 {
	y := make([]float64, n)
	for i := range y {
		y[i] = 12*math.Sin(float64(i)/float64(n)*6) + noise*random.NormFloat64()
	}
	return y
}

func labels(n int, format string) []string {
	l := make([]string, n)
	for i := range l {
		l[i] = fmt.Sprintf(format, i)
	}
	return l
}

var regions = []string{"North America", "Europe, Middle East and Africa", "Asia", "Latin America", "Oceania", "Antarctica"}

// examples are charts that must be readable.
func examples() map[string]Chart {
	gaps := wave(180, 1)
	for i := 60; i < 80; i++ {
		gaps[i] = math.NaN()
	}
	days := make([]float64, 180)
	for i := range days {
		days[i] = seconds(time.Date(2024, 11, 20, 0, 0, 0, 0, time.UTC)) + float64(i)*day
	}
	shifted := func(y []float64, by float64) []float64 {
		for i := range y {
			y[i] += by
		}
		return y
	}
	var cloud [2]Series
	for i := range cloud {
		cloud[i].Name = []string{"Used", "New"}[i]
		for range 5000 {
			x := random.NormFloat64()*40 + 150
			cloud[i].X = append(cloud[i].X, x)
			cloud[i].Y = append(cloud[i].Y, x*float64(60+40*i)+random.NormFloat64()*1500)
		}
	}
	heights := make([]float64, 3000)
	for i := range heights {
		heights[i] = random.NormFloat64()*15 + 170
	}
	random1 := make([]float64, 60)
	for i := range random1 {
		random1[i] = math.Abs(random.NormFloat64() * 100)
	}
	return map[string]Chart{
		"bar": {Type: Bar, Title: "Revenue by region", YName: "US dollars", Axis: Category, Labels: regions, Series: []Series{
			{"2024", indexes(6), []float64{1234567, 900000, 1500000, 300000, 120000, -80000}},
			{"2025", indexes(6), []float64{1100000, 950000, 1700000, -150000, 140000, 20000}},
		}},
		"bar_one":  {Type: Bar, Title: "Größe der Städte — Ελλάδα, Россия", YName: "population", XName: "city", Axis: Category, Labels: []string{"Berlin", "Αθήνα", "Москва", "Łódź"}, Series: []Series{{"population", indexes(4), []float64{3.7e6, 0.66e6, 13.1e6, 0.65e6}}}},
		"bar_many": {Type: Bar, Title: "Sixty services", YName: "calls", Axis: Category, Labels: labels(60, "service-with-a-long-name-%02d"), Series: []Series{{"calls", indexes(60), random1}}},
		"line": {Type: Line, Title: "Temperature", YName: "°C", Axis: Time, Series: []Series{
			{"Berlin", days, wave(180, 1)}, {"Zürich", days, shifted(gaps, 8)}, {"Αθήνα", days, shifted(wave(180, 1), 16)},
		}},
		"line_few":   {Type: Line, Title: "Stars per year", XName: "year", YName: "stars", Axis: Number, Series: []Series{{"stars", []float64{2019, 2020, 2021, 2022, 2023}, []float64{120, 480, 1900, 5200, 11800}}}},
		"line_hours": {Type: Line, Title: "Load", YName: "requests per second", Axis: Time, Series: []Series{{"load", shifted(append([]float64(nil), scaled(indexes(200), 900)...), 1.7e9), wave(200, 2)}}},
		"area": {Type: Area, Title: "Temperature", YName: "°C", Axis: Time, Series: []Series{
			{"Berlin", days, wave(180, 1)}, {"Zürich", days, gaps},
		}},
		"scatter":    {Type: Scatter, Title: "Price and size of 10,000 flats", XName: "size in m²", YName: "price", Axis: Number, Series: cloud[:]},
		"pie":        {Type: Pie, Title: "Share of traffic", Axis: Category, Labels: regions, Series: []Series{{"share", indexes(6), []float64{42, 23, 15, 11, 6, 3}}}},
		"pie_many":   {Type: Pie, Title: "Languages", Axis: Category, Labels: labels(30, "language %d"), Series: []Series{{"", indexes(30), random1[:30]}}},
		"hist":       {Type: Hist, Title: "Height", XName: "cm", YName: "count", Series: []Series{{Name: "height", Y: heights}}},
		"hist_two":   {Type: Hist, Title: "Height of two groups", XName: "cm", Series: []Series{{Name: "a", Y: heights}, {Name: "b", Y: shifted(append([]float64(nil), heights[:2000]...), 20)}}},
		"long_title": {Type: Line, Title: strings.Repeat("A very long title that goes on ", 10), Axis: Category, Labels: labels(12, "2024-%02d"), Series: manySeries(12)},
		"cjk":        {Type: Bar, Title: "売上 by 地域", Axis: Category, Labels: []string{"東京", "Osaka"}, Series: []Series{{"", indexes(2), []float64{3, -4}}}},
	}
}

func scaled(y []float64, by float64) []float64 {
	for i := range y {
		y[i] *= by
	}
	return y
}

func manySeries(n int) []Series {
	var all []Series
	for i := range MaxSeries {
		all = append(all, Series{fmt.Sprintf("a series named %d", i), indexes(n), wave(n, 3)})
	}
	return all
}

// sized returns the chart in a small size, for the race detector makes drawing twenty times slower; or, where it is
// to be looked at, in the size that scripts get if they name none.
func sized(c Chart) Chart {
	c.Width, c.Height = 4, 2.4
	if *out != "" {
		c.Width, c.Height = 10, 6
	}
	return c
}

func render(t *testing.T, c Chart) image.Image {
	t.Helper()
	picture, err := Render(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(bytes.NewReader(picture.PNG))
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func TestRender(t *testing.T) {
	for name, c := range examples() {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			picture, err := Render(t.Context(), sized(c))
			if err != nil {
				t.Fatal(err)
			}
			t.Log(time.Since(start), len(picture.PNG), "bytes")
			if *out != "" {
				if err := os.WriteFile(filepath.Join(*out, name+".png"), picture.PNG, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			img, err := png.Decode(bytes.NewReader(picture.PNG))
			if err != nil {
				t.Fatal(err)
			}
			if got := img.Bounds().Size(); *out == "" && got != image.Pt(576, 346) {
				t.Errorf("the picture has %v pixels", got)
			}
			if want := name == "cjk"; (picture.Missing != "") != want {
				t.Errorf("characters without a glyph: %q", picture.Missing)
			}
		})
	}
}

// What differs from a chart that can be drawn.
func TestCheck(t *testing.T) {
	one := func(x, y float64) []Series { return []Series{{"s", []float64{x}, []float64{y}}} }
	tests := []struct {
		name   string
		change func(*Chart)
		want   string // part of the message; empty: it can be drawn
	}{
		{"nothing", func(*Chart) {}, ""},
		{"type", func(c *Chart) { c.Type = "radar" }, `"radar" is none of`},
		{"width", func(c *Chart) { c.Width = 100 }, "width is 2 to 27"},
		{"width that is no number", func(c *Chart) { c.Width = math.NaN() }, "can't be drawn"},
		{"height", func(c *Chart) { c.Height = 0 }, "height 2 to 20"},
		{"axis", func(c *Chart) { c.Axis = "log" }, "none of number, time, category"},
		{"no series", func(c *Chart) { c.Series = nil }, "no series"},
		{"many series", func(c *Chart) { c.Series = make([]Series, MaxSeries+1) }, "at most 20"},
		{"no values", func(c *Chart) { c.Series = one(0, math.NaN()) }, "no values"},
		{"points", func(c *Chart) { c.Series = []Series{{"s", indexes(MaxPoints + 1), indexes(MaxPoints + 1)}} }, "more than 100000 points"},
		{"lengths", func(c *Chart) { c.Series[0].X = nil }, "has 0 x and 2 y"},
		{"large", func(c *Chart) { c.Series = one(0, 1e200) }, "too large"},
		{"infinite", func(c *Chart) { c.Series = one(0, math.Inf(-1)) }, "too large"},
		{"x", func(c *Chart) { c.Series = one(math.NaN(), 1) }, "an x of NaN"},
		{"time", func(c *Chart) { c.Axis = Time; c.Series = one(1e12, 1) }, "an x of 1e+12"},
		{"category", func(c *Chart) { c.Axis = Category; c.Labels = []string{"a"} }, "category 1 of 1"},
		{"half a category", func(c *Chart) { c.Axis = Category; c.Labels = regions; c.Series = one(0.5, 1) }, "category 0.5"},
		{"bars of numbers", func(c *Chart) { c.Type = Bar }, "a bar wants categories"},
		{"bars", func(c *Chart) { c.Type, c.Axis, c.Labels = Bar, Category, make([]string, MaxBars+1) }, "at most 5000"},
		{"labels", func(c *Chart) { c.Labels = make([]string, MaxLabels+1) }, "10001 categories"},
		{"label", func(c *Chart) { c.Labels = []string{strings.Repeat("x", 501)} }, "501 bytes"},
		{"title", func(c *Chart) { c.Title = "\xff" }, "not UTF-8"},
		{"area that goes back", func(c *Chart) { c.Type, c.Series[0].X = Area, []float64{2, 1} }, "sort the rows"},
		{"line that goes back", func(c *Chart) { c.Series[0].X = []float64{2, 1} }, ""},
		{"long line that goes back", func(c *Chart) {
			c.Series = []Series{{"s", wave(MaxLoose+1, 1), wave(MaxLoose+1, 1)}}
		}, "sort the rows"},
		{"negative pie", func(c *Chart) { c.Type, c.Axis, c.Labels = Pie, Category, regions; c.Series = one(0, -1) }, "negative value -1"},
		{"pie of zeros", func(c *Chart) { c.Type, c.Axis, c.Labels = Pie, Category, regions; c.Series = one(0, 0) }, "pie of zeros"},
		{"two pies", func(c *Chart) {
			c.Type, c.Axis, c.Labels, c.Series = Pie, Category, regions, append(one(0, 1), one(0, 1)...)
		}, "one series, not 2"},
		{"one point", func(c *Chart) { c.Series = one(5, 5) }, ""},
		{"points that are one", func(c *Chart) { c.Series = []Series{{"s", []float64{1e16, 1e16 + 2}, []float64{1e16, 1e16 + 2}}} }, ""},
		{"extremes", func(c *Chart) { c.Series = []Series{{"s", []float64{-1e150, 1e150}, []float64{-1e150, 1e150}}} }, ""},
		{"tiny", func(c *Chart) { c.Series = []Series{{"s", []float64{0, 5e-324}, []float64{0, 5e-324}}} }, ""},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			c := sized(Chart{Type: Line, Axis: Number, Series: []Series{{"s", indexes(2), indexes(2)}}})
			tc.change(&c)
			_, err := Render(t.Context(), c)
			if tc.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if _, ok := errors.AsType[*Error](err); !ok || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an Error with %q", err, tc.want)
			}
		})
	}
}

func TestRenderIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Render(ctx, sized(examples()["line"])); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// The charts with most points of each type are drawn, and one in the largest size.
func TestRenderLimits(t *testing.T) {
	each := MaxPoints / MaxSeries
	for _, c := range []Chart{
		{Type: Line, Axis: Number, Series: []Series{{"s", indexes(MaxPoints), wave(MaxPoints, 1)}}},
		{Type: Line, Axis: Number, Series: []Series{{"zigzag", wave(MaxLoose, 9), wave(MaxLoose, 9)}}},
		{Type: Area, Axis: Number, Series: []Series{{"s", indexes(MaxPoints), wave(MaxPoints, 1)}}},
		{Type: Scatter, Axis: Number, Series: []Series{{"s", indexes(MaxPoints), wave(MaxPoints, 1)}}},
		{Type: Bar, Axis: Category, Labels: labels(MaxBars, "label %d"), Series: []Series{{"s", indexes(MaxBars), wave(MaxBars, 1)}}},
		{Type: Pie, Axis: Category, Labels: labels(MaxLabels, "label %d"), Series: []Series{{"s", indexes(MaxLabels), indexes(MaxLabels)}}},
		{Type: Hist, Series: []Series{{Name: "s", Y: wave(MaxPoints, 1)}}},
		{Type: Line, Axis: Category, Labels: labels(MaxLabels, "label %d"), Series: manySeries(each)},
	} {
		start := time.Now()
		render(t, sized(c))
		t.Log(c.Type, len(c.Series), time.Since(start))
	}
	for _, size := range []struct {
		width, height float64
		want          image.Point
	}{{MaxWidth, MinHeight, image.Pt(3888, 288)}, {MinWidth, MaxHeight, image.Pt(288, 2880)}} {
		c := examples()["bar"]
		c.Width, c.Height = size.width, size.height
		if got := render(t, c).Bounds().Size(); got != size.want {
			t.Errorf("the picture has %v pixels, want %v", got, size.want)
		}
	}
}

// However small a chart is, there is room for what it shows.
func TestRoom(t *testing.T) {
	for name, c := range examples() {
		for _, height := range []float64{MinHeight, 2.99, 3, 6} {
			for _, width := range []float64{MinWidth, 6} {
				c.Width, c.Height = width, height
				p, err := newPage(width, height)
				if err != nil {
					t.Fatal(err)
				}
				if c.Type == Pie {
					continue
				}
				f := layOut(&c, p)
				if w, h := f.area.Max.X-f.area.Min.X, f.area.Max.Y-f.area.Min.Y; w < 20 || h < 20 {
					t.Errorf("%s of %v by %v inches has %v by %v points", name, width, height, w, h)
				}
			}
		}
	}
}

// A gap in a line is not bridged.
func TestGap(t *testing.T) {
	blue := func(y []float64) int {
		c := sized(Chart{Type: Line, Axis: Number, Series: []Series{{"s", indexes(100), y}}})
		img, n := render(t, c), 0
		for x := img.Bounds().Dx() * 3 / 7; x < img.Bounds().Dx()*4/7; x++ { // the middle of the picture
			for y := range img.Bounds().Dy() {
				if r, _, b, _ := img.At(x, y).RGBA(); b > 0xd000 && r < 0x6000 {
					n++
				}
			}
		}
		return n
	}
	whole, gap := wave(100, 0), wave(100, 0)
	for i := 30; i < 70; i++ {
		gap[i] = math.NaN()
	}
	if n := blue(whole); n == 0 {
		t.Error("the line is not there")
	}
	if n := blue(gap); n != 0 {
		t.Errorf("%d pixels of the line are in its gap", n)
	}
}

func TestNumberTicks(t *testing.T) {
	tests := []struct {
		name   string
		lo, hi float64
		want   string
	}{
		{"small", 0, 1, "0.0 0.2 0.4 0.6 0.8 1.0"},
		{"years", 2019, 2023, "2019 2020 2021 2022 2023"},
		{"thousands", 0, 1.5e6, "0 500,000 1,000,000 1,500,000"},
		{"below zero", -20, 20, "−20 −10 0 10 20"},
		{"fractions", 0.001, 0.002, "0.0010 0.0012 0.0014 0.0016 0.0018 0.0020"},
		{"tiny", 0, 1e-9, "0 2e-10 4e-10 6e-10 8e-10 1e-09"},
		{"huge", 0, 1e20, "0 2e+19 4e+19 6e+19 8e+19 1e+20"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			for _, tick := range numberTicks(tc.lo, tc.hi, 5) {
				got = append(got, tick.label)
			}
			if strings.Join(got, " ") != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestTimeTicks(t *testing.T) {
	at := func(s string) float64 {
		when, err := time.Parse(time.DateTime, s)
		if err != nil {
			t.Fatal(err)
		}
		return seconds(when)
	}
	tests := []struct {
		name, lo, hi string
		want         []string
	}{
		{"seconds", "2024-05-01 12:00:00", "2024-05-01 12:00:50", []string{"12:00:00\nMay 1, 2024", "12:00:15", "12:00:30", "12:00:45"}},
		{"midnight", "2024-05-01 18:30:00", "2024-05-02 07:00:00", []string{"21:00\nMay 1, 2024", "00:00\nMay 2, 2024", "03:00", "06:00"}},
		{"weeks begin on Mondays", "2024-05-01 00:00:00", "2024-06-01 00:00:00", []string{"May 6\n2024", "May 13", "May 20", "May 27"}},
		{"months", "2024-11-15 00:00:00", "2025-03-15 00:00:00", []string{"Dec\n2024", "Jan\n2025", "Feb", "Mar"}},
		{"years", "2015-03-01 00:00:00", "2025-03-01 00:00:00", []string{"2016", "2018", "2020", "2022", "2024"}},
		{"all", "0001-01-01 00:00:00", "9999-01-01 00:00:00", []string{"2000", "4000", "6000", "8000"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			for _, tick := range timeTicks(at(tc.lo), at(tc.hi), 5) {
				got = append(got, tick.label)
			}
			if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// Whatever passes the check is drawn, and nothing else.
func FuzzRender(f *testing.F) {
	kinds := []Type{Bar, Line, Scatter, Area, Pie, Hist, "other"}
	axes := []Axis{Category, Number, Time, "other"}
	f.Add(uint8(0), uint8(0), "title", "a\nb\nc", 3.0, 2.0, 1.0, 2.0, 3.0, uint8(1))
	f.Add(uint8(1), uint8(2), "", "", 2.0, 2.0, 0.0, 1e9, math.NaN(), uint8(2))
	f.Add(uint8(2), uint8(1), "\xff", "x", 27.0, 20.0, -1e150, 1e150, 5e-324, uint8(3))
	f.Add(uint8(4), uint8(0), "pie", "x\ny", 2.0, 2.0, 1.0, 0.0, 7.0, uint8(1))
	f.Fuzz(func(t *testing.T, kind, axis uint8, title, texts string, width, height, a, b, d float64, series uint8) {
		c := Chart{
			Type: kinds[int(kind)%len(kinds)], Axis: axes[int(axis)%len(axes)],
			Title: title, XName: title, YName: texts, Width: math.Mod(width, 6), Height: math.Mod(height, 6),
			Labels: strings.Split(texts, "\n"),
		}
		for i := range series % 24 {
			x := []float64{a, b, d, b, a}
			if c.Axis == Category {
				x = indexes(min(len(c.Labels), 5))
			}
			c.Series = append(c.Series, Series{texts, x, []float64{b, d, a, d * float64(i), b - a}[:len(x)]})
		}
		checked := c.Check()
		picture, err := Render(t.Context(), c)
		if (checked == nil) != (err == nil) {
			t.Fatalf("the check says %v, drawing %v", checked, err)
		}
		if err == nil {
			if _, err := png.DecodeConfig(bytes.NewReader(picture.PNG)); err != nil {
				t.Fatal(err)
			}
		}
	})
}
