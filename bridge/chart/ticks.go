package chart

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// A tick is a mark on an axis. Its label may have a second line.
type tick struct {
	value float64
	label string
}

// niceStep returns the step of 1, 2 or 5 times a power of ten that divides span into about n parts.
func niceStep(span float64, n int) float64 {
	raw := span / float64(max(n, 1))
	power := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, f := range []float64{1, 2, 5} {
		if raw <= f*power*1.000001 {
			return f * power
		}
	}
	return 10 * power
}

// maxTicks bounds the tick marks of an axis, whatever the numbers are.
const maxTicks = 50

// numberTicks returns about n ticks within lo and hi, lo < hi.
func numberTicks(lo, hi float64, n int) []tick {
	step := niceStep(hi-lo, n)
	first := math.Ceil(lo/step - 1e-9)
	var ticks []tick
	for i := 0; i < maxTicks; i++ {
		v := (first + float64(i)) * step
		if v > hi+step*1e-6 {
			break
		}
		if math.Abs(v) < step*1e-6 {
			v = 0
		}
		ticks = append(ticks, tick{v, formatNumber(v, step)})
	}
	return ticks
}

// niceRange widens lo and hi to the next of about n steps. zero says that 0 must be in it.
func niceRange(lo, hi float64, n int, zero bool) (float64, float64) {
	if zero {
		lo, hi = math.Min(lo, 0), math.Max(hi, 0)
	}
	lo, hi = widen(lo, hi)
	step := niceStep(hi-lo, n)
	low, high := math.Floor(lo/step+1e-9)*step, math.Ceil(hi/step-1e-9)*step
	if low < high {
		return low, high
	}
	return lo, hi
}

// widen makes a range of one that is a point, or so small that numbers in it can't be told apart.
func widen(lo, hi float64) (float64, float64) {
	size := math.Max(math.Abs(lo), math.Abs(hi))
	if hi-lo > size*1e-12 && hi-lo > 1e-290 {
		return lo, hi
	}
	if size < 1e-290 {
		return lo - 1, hi + 1
	}
	return lo - size/10, hi + size/10
}

// formatNumber writes a number of a sequence with the given step: with separators of thousands from 10,000 on, so
// that years have none.
func formatNumber(v, step float64) string {
	if size := math.Max(math.Abs(v), step); size >= 1e15 || step < 1e-6 {
		return strconv.FormatFloat(v, 'g', 4, 64)
	}
	decimals := max(0, int(math.Ceil(-math.Log10(step)-1e-9)))
	return group(strconv.FormatFloat(v, 'f', decimals, 64))
}

// formatValue writes a number that stands for itself.
func formatValue(v float64) string {
	size := math.Abs(v)
	switch {
	case size >= 1e15 || size != 0 && size < 1e-4:
		return strconv.FormatFloat(v, 'g', 4, 64)
	case size >= 1000 || v == math.Trunc(v):
		return group(strconv.FormatFloat(math.Round(v), 'f', 0, 64))
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// group puts commas into a decimal of five or more digits before the point.
func group(s string) string {
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "−", s[1:]
	}
	whole, fraction, dot := strings.Cut(s, ".")
	if len(whole) > 4 {
		for i := len(whole) - 3; i > 0; i -= 3 {
			whole = whole[:i] + "," + whole[i:]
		}
	}
	if dot {
		whole += "." + fraction
	}
	return sign + whole
}

// maxTime bounds times to the years that have four digits, in seconds since 1970.
const maxTime = 253_402_300_800.0

// A timeStep is a distance of tick marks on an axis of times.
type timeStep struct {
	seconds float64 // about
	months  int     // if not 0, what it really is
	label   string  // layout of what a tick shows
	context string  // layout of what is below it where it changes; empty: nothing
}

const (
	day   = 86_400.0
	month = 30.44 * day
	year  = 365.25 * day
)

var timeSteps = []timeStep{
	{seconds: 1, label: "15:04:05", context: "Jan 2, 2006"},
	{seconds: 5, label: "15:04:05", context: "Jan 2, 2006"},
	{seconds: 15, label: "15:04:05", context: "Jan 2, 2006"},
	{seconds: 30, label: "15:04:05", context: "Jan 2, 2006"},
	{seconds: 60, label: "15:04", context: "Jan 2, 2006"},
	{seconds: 300, label: "15:04", context: "Jan 2, 2006"},
	{seconds: 900, label: "15:04", context: "Jan 2, 2006"},
	{seconds: 1800, label: "15:04", context: "Jan 2, 2006"},
	{seconds: 3600, label: "15:04", context: "Jan 2, 2006"},
	{seconds: 3 * 3600, label: "15:04", context: "Jan 2, 2006"},
	{seconds: 6 * 3600, label: "15:04", context: "Jan 2, 2006"},
	{seconds: 12 * 3600, label: "15:04", context: "Jan 2, 2006"},
	{seconds: day, label: "Jan 2", context: "2006"},
	{seconds: 2 * day, label: "Jan 2", context: "2006"},
	{seconds: 7 * day, label: "Jan 2", context: "2006"},
	{seconds: 14 * day, label: "Jan 2", context: "2006"},
	{seconds: month, months: 1, label: "Jan", context: "2006"},
	{seconds: 2 * month, months: 2, label: "Jan", context: "2006"},
	{seconds: 3 * month, months: 3, label: "Jan", context: "2006"},
	{seconds: 6 * month, months: 6, label: "Jan", context: "2006"},
	{seconds: year, months: 12, label: "2006"},
}

// timeTicks returns about n ticks within lo and hi, which are seconds since 1970.
func timeTicks(lo, hi float64, n int) []tick {
	if hi-lo < 3 { // fractions of a second
		return numberTicks(lo, hi, n)
	}
	const slack = 0.5 // ticks more than asked for, since few spans are a multiple of a step
	years := int(max(niceStep((hi-lo)/year/(float64(n)+slack), 1), 1))
	step := timeStep{seconds: float64(years) * year, months: 12 * years, label: "2006"}
	for _, s := range timeSteps {
		if (hi-lo)/s.seconds <= float64(n)+slack {
			step = s
			break
		}
	}
	var ticks []tick
	context := ""
	for at := step.first(lo); len(ticks) < maxTicks && seconds(at) <= hi; at = step.next(at) {
		if seconds(at) < lo {
			continue
		}
		label := at.Format(step.label)
		if c := at.Format(step.context); step.context != "" && c != context {
			label += "\n" + c
			context = c
		}
		ticks = append(ticks, tick{seconds(at), label})
	}
	return ticks
}

// first returns a multiple of the step that is not after lo by more than a step.
func (s timeStep) first(lo float64) time.Time {
	at := time.Unix(int64(math.Floor(lo)), 0).UTC()
	if s.months > 0 {
		months := at.Year()*12 + int(at.Month()) - 1
		months -= ((months % s.months) + s.months) % s.months
		return time.Date(0, time.Month(months+1), 1, 0, 0, 0, 0, time.UTC)
	}
	step := int64(s.seconds)
	offset := int64(0)
	if step%(7*86_400) == 0 {
		offset = 4 * 86_400 // 1970 began on a Thursday, weeks begin on Mondays
	}
	unix := at.Unix() - offset
	return time.Unix(unix-((unix%step)+step)%step+offset, 0).UTC()
}

func (s timeStep) next(at time.Time) time.Time {
	if s.months > 0 {
		return at.AddDate(0, s.months, 0)
	}
	return at.Add(time.Duration(s.seconds) * time.Second)
}

func seconds(t time.Time) float64 { return float64(t.Unix()) }
