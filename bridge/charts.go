package bridge

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"codeexec/bridge/chart"
	"codeexec/hostfuncs"
)

// chartParams are the parameters of chart.render. The numbers are attachments: for each series its X, unless it is a
// histogram, and then its Y, as 64-bit floats in little endian. A Y that is NaN is a gap.
type chartParams struct {
	Type   chart.Type `json:"type"`
	Title  string     `json:"title"`
	XName  string     `json:"x_name"`
	YName  string     `json:"y_name"`
	Width  float64    `json:"width"` // inches
	Height float64    `json:"height"`
	Axis   chart.Axis `json:"axis"`
	Labels []string   `json:"labels"`
	Series []string   `json:"series"` // their names
}

// chartAnswer is the answer to chart.render. Its attachment is a PNG.
type chartAnswer struct {
	Missing string `json:"missing"` // characters that the font doesn't have
}

// renderChart answers chart.render.
func (h *guestHandler) renderChart(ctx context.Context, req hostfuncs.Request) (hostfuncs.Response, error) {
	var p chartParams
	if err := json.Unmarshal(req.Params, &p); err != nil {
		return hostfuncs.Response{}, fmt.Errorf("chart.render: %w", err)
	}
	c := chart.Chart{
		Type: p.Type, Title: p.Title, XName: p.XName, YName: p.YName,
		Width: p.Width, Height: p.Height, Axis: p.Axis, Labels: p.Labels,
	}
	columns := 2
	if c.Type == chart.Hist {
		columns = 1
	}
	if len(req.Attachments) != columns*len(p.Series) {
		return hostfuncs.Response{}, fmt.Errorf("chart.render: %d attachments for %d series", len(req.Attachments), len(p.Series))
	}
	points := 0
	for _, a := range req.Attachments {
		points += len(a) / 8
	}
	if points > columns*chart.MaxPoints { // before they are copied
		return hostfuncs.Response{}, chartError(fmt.Errorf("more than %d points: aggregate them, or draw a part", chart.MaxPoints))
	}
	for i, name := range p.Series {
		s := chart.Series{Name: name, Y: floats(req.Attachments[columns*i+columns-1])}
		if columns == 2 {
			s.X = floats(req.Attachments[columns*i])
		}
		c.Series = append(c.Series, s)
	}
	// The largest charts take a processor for seconds.
	select {
	case h.drawing <- struct{}{}:
	case <-ctx.Done():
		return hostfuncs.Response{}, context.Cause(ctx)
	}
	defer func() { <-h.drawing }()
	drawn, err := chart.Render(ctx, c)
	if wrong, ok := errors.AsType[*chart.Error](err); ok {
		return hostfuncs.Response{}, chartError(wrong)
	}
	if err != nil {
		return hostfuncs.Response{}, err
	}
	resp, err := respond(chartAnswer{drawn.Missing})
	resp.Attachments = [][]byte{drawn.PNG}
	return resp, err
}

func chartError(err error) error {
	return &hostfuncs.Error{Kind: kindValueError, Message: err.Error()}
}

// floats reads the numbers of an attachment; bytes that are left over are no number.
func floats(data []byte) []float64 {
	out := make([]float64, len(data)/8)
	for i := range out {
		out[i] = math.Float64frombits(binary.LittleEndian.Uint64(data[8*i:]))
	}
	return out
}
