package observed

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/common/model"
)

// picture is an image of panels of the dashboard during the whole suite. `make picture` draws it again.
const picture = "config/docs/dashboard.svg"

var redraw = flag.Bool("picture", false, "draw "+picture+" from what Prometheus has seen")

// shown are the panels of the picture.
var shown = []string{"Scopes", "Clusters", "Resources by state", "Problems"}

// The dimensions of the picture, in pixels. The names of series are to the left of the bars.
const (
	pictureWidth, left, right = 852, 205, 832
	barHeight, stackHeight    = 16, 100
	pictureStyle              = `
    .page { fill: #ffffff; stroke: #d0d7de }
    .title { fill: #1f2328; font-weight: 600 }
    .series, .legend, .time { fill: #57606a; font-size: 12px }
    @media (prefers-color-scheme: dark) {
      .page { fill: #0d1117; stroke: #30363d }
      .title { fill: #f0f6fc }
      .series, .legend, .time { fill: #9da7b3 }
    }
  `
)

// colors are the colors of Grafana to which the dashboard refers by name.
var colors = map[string]string{
	"green": "#73bf69", "yellow": "#fade2a", "orange": "#ff9830", "red": "#f2495c", "dark-red": "#c4162a",
	"blue": "#5794f2", "purple": "#b877d9", "dark-purple": "#8f3bb8", "#808080": "#808080",
}

// drawing is a picture on which panels are drawn from top to bottom.
type drawing struct {
	strings.Builder

	from time.Time
	// scale is in pixels per second; y is the vertical position of the next element.
	scale float64
	y     int
}

// draw queries Prometheus for the data of the panels, and returns the panels as an SVG.
func draw(ctx context.Context, from, to time.Time) string {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(root, "config", "grafana", "healthscope.json"))
	Expect(err).NotTo(HaveOccurred())
	dashboard, err := ReadDashboard(text)
	Expect(err).NotTo(HaveOccurred())
	d := &drawing{from: from, scale: (right - left) / (to.Sub(from).Seconds() + 2), y: 10}
	for _, p := range dashboard.Panels {
		if slices.Contains(shown, p.Title) && p.Type != "row" {
			series, err := prometheus.QueryRange(ctx, Fill(p.Targets[0].Expr, "10s"), from, to)
			Expect(err).NotTo(HaveOccurred())
			d.panel(p, series)
		}
	}
	d.y += 25
	for at := time.Duration(0); at < to.Sub(from); at += time.Minute {
		d.text("time", left+int(at.Seconds()*d.scale), fmt.Sprintf("%.0f min", at.Minutes()))
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" font-family="system-ui, sans-serif" font-size="13">
  <style>%s</style>
  <rect class="page" x="0.5" y="0.5" width="%d" height="%d" rx="8"/>
%s</svg>
`, pictureWidth, d.y+20, pictureStyle, pictureWidth-1, d.y+19, d.String())
}

func (d *drawing) text(class string, x int, text string) {
	fmt.Fprintf(d, "  <text class=%q x=\"%d\" y=\"%d\">%s</text>\n", class, x, d.y, text)
}

// panel draws a panel: a bar of states for each series, or a stack of numbers.
func (d *drawing) panel(p Panel, series model.Matrix) {
	d.y += 20
	d.text("title", 20, p.Title)
	d.y += 10
	legend := map[string]string{}
	if mappings := p.FieldConfig.Defaults.Mappings; len(mappings) > 0 {
		for _, s := range series {
			d.y += barHeight
			d.text("series", 20, p.Name(s.Metric))
			for _, r := range runs(s.Values, map[model.Time]float64{}) {
				state := mappings[0].Options[strconv.Itoa(int(r.value))]
				r.color = colors[state.Color]
				legend[state.Text] = r.color
				d.bar(r, d.y-12, barHeight-3)
			}
		}
	} else {
		d.y += stackHeight
		d.stack(p, series, legend)
	}
	d.y += 18
	x := left
	for _, text := range slices.Sorted(maps.Keys(legend)) {
		fmt.Fprintf(d, "  <rect x=\"%d\" y=\"%d\" width=\"9\" height=\"9\" fill=%q/>\n", x, d.y-9, legend[text])
		d.text("legend", x+14, text)
		x += 30 + 7*len(text)
	}
}

// stack draws the series for which the panel has a color on top of each other, in the panel's order.
func (d *drawing) stack(p Panel, series model.Matrix, legend map[string]string) {
	sums := map[model.Time]float64{}
	var all []run
	for _, o := range p.FieldConfig.Overrides {
		for _, s := range series {
			if name := p.Name(s.Metric); name == o.Matcher.Options {
				legend[name] = colors[o.Properties[0].Value.FixedColor]
				for _, r := range runs(s.Values, sums) {
					r.color = legend[name]
					all = append(all, r)
				}
			}
		}
	}
	unit := stackHeight / slices.Max(slices.Collect(maps.Values(sums)))
	for _, r := range all {
		top := int((r.base + r.value) * unit)
		d.bar(r, d.y-top, top-int(r.base*unit))
	}
}

// run is a period, in seconds, during which a value and its base, the sum of the values below it, do not change.
type run struct {
	from, to, base, value float64
	color                 string
}

func (d *drawing) bar(r run, y, height int) {
	x := left + (r.from-float64(d.from.Unix()))*d.scale
	fmt.Fprintf(d, "  <rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=%q/>\n", x, y, (r.to-r.from)*d.scale, height, r.color)
}

// runs returns the runs of values that are one second apart. The base of a value is the sum of its time in sums, to which runs
// then adds the value.
func runs(values []model.SamplePair, sums map[model.Time]float64) []run {
	var found []run
	for _, v := range values {
		at := float64(v.Timestamp.Unix())
		next := run{from: at, to: at + 1, base: sums[v.Timestamp], value: float64(v.Value)}
		sums[v.Timestamp] += next.value
		if n := len(found) - 1; n >= 0 && found[n].to == at && found[n].base == next.base && found[n].value == next.value {
			found[n].to = next.to
		} else {
			found = append(found, next)
		}
	}
	return found
}

func TestRunsEndWhereAValueChangesOrIsMissing(t *testing.T) {
	values := []model.SamplePair{{Timestamp: 1000, Value: 2}, {Timestamp: 2000, Value: 2}, {Timestamp: 4000, Value: 2}, {Timestamp: 5000, Value: 3}}
	want := []run{{from: 1, to: 3, base: 1, value: 2}, {from: 4, to: 5, value: 2}, {from: 5, to: 6, value: 3}}
	if got := runs(values, map[model.Time]float64{1000: 1, 2000: 1}); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestThePictureIsOfTheDashboard checks the picture's words: its times differ from run to run.
func TestThePictureIsOfTheDashboard(t *testing.T) {
	svg, err := os.ReadFile(filepath.Join("..", "..", picture))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "config", "grafana", "healthscope.json"))
	if err != nil {
		t.Fatal(err)
	}
	var titles []string
	for _, m := range regexp.MustCompile(`<text class="(title|legend)"[^>]*>(.*)</text>`).FindAllStringSubmatch(string(svg), -1) {
		if m[1] == "title" {
			titles = append(titles, m[2])
		}
		if !strings.Contains(string(text), strconv.Quote(m[2])) {
			t.Errorf("the dashboard has no %s %q: run \"make picture\"", m[1], m[2])
		}
	}
	if !slices.Equal(titles, shown) {
		t.Errorf("the picture shows the panels %q, want %q: run \"make picture\"", titles, shown)
	}
}
