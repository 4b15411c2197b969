package observed

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/prometheus/common/model"
)

// Dashboard is what a dashboard of Grafana consists of, as far as it is looked at here.
type Dashboard struct {
	// UID identifies the dashboard in links.
	UID string `json:"uid"`
	// Panels are its panels, and the rows that they are in.
	Panels []Panel `json:"panels"`
	// Templating has its variables.
	Templating struct {
		List []Variable `json:"list"`
	} `json:"templating"`
}

// Panel is a panel of a dashboard.
type Panel struct {
	ID          int    `json:"id"`
	Type        string `json:"type"`
	Title       string `json:"title"`
	Description string `json:"description"`
	// GridPos is where it is, on a grid that is 24 wide.
	GridPos struct {
		X, Y, W, H int
	} `json:"gridPos"`
	// Datasource is where its queries go.
	Datasource struct {
		UID string `json:"uid"`
	} `json:"datasource"`
	// FieldConfig has the unit of its values, what they are shown as, and the colors of series.
	FieldConfig struct {
		Defaults struct {
			Unit     string `json:"unit"`
			Mappings []struct {
				Options map[string]struct{ Text, Color string } `json:"options"`
			} `json:"mappings"`
		} `json:"defaults"`
		Overrides []struct {
			Matcher    struct{ Options string } `json:"matcher"`
			Properties []struct {
				Value struct{ FixedColor string } `json:"value"`
			} `json:"properties"`
		} `json:"overrides"`
	} `json:"fieldConfig"`
	// Targets are its queries.
	Targets []struct {
		RefID        string `json:"refId"`
		Expr         string `json:"expr"`
		LegendFormat string `json:"legendFormat"`
	} `json:"targets"`
}

// Name returns the name of a series of the panel.
func (p Panel) Name(labels model.Metric) string {
	name := p.Targets[0].LegendFormat
	for label, value := range labels {
		name = strings.ReplaceAll(name, "{{"+string(label)+"}}", string(value))
	}
	return name
}

// Variable is a variable of a dashboard.
type Variable struct {
	Name string `json:"name"`
	Type string `json:"type"`
	// Query is what its values come from: a word, or an object with a query.
	Query json.RawMessage `json:"query"`
}

// ReadDashboard reads a dashboard.
func ReadDashboard(text []byte) (Dashboard, error) {
	var d Dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		return Dashboard{}, fmt.Errorf("cannot read the dashboard: %w", err)
	}
	return d, nil
}

var values = regexp.MustCompile(`^label_values\((.+), *\w+\)$`)

// Selected returns the query whose series a variable takes its values from; empty when it is none of Prometheus.
func (v Variable) Selected() string {
	var query struct {
		Query string `json:"query"`
	}
	if json.Unmarshal(v.Query, &query) != nil {
		return ""
	}
	if match := values.FindStringSubmatch(query.Query); match != nil {
		return match[1]
	}
	return ""
}

var variable = regexp.MustCompile(`\$\{?\w+\}?`)

// Fill returns a query of a dashboard as Grafana sends it when nothing is chosen, with a span to look back.
func Fill(query, span string) string {
	return variable.ReplaceAllString(strings.ReplaceAll(query, "$__rate_interval", span), ".*")
}
