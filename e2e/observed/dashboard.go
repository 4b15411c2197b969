package observed

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/prometheus/common/model"
)

// Dashboard holds the fields of a Grafana dashboard that this package reads.
type Dashboard struct {
	// UID identifies the dashboard in links.
	UID string `json:"uid"`
	// Panels are its panels and rows.
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
	// GridPos is the position and size of the panel, on a grid of 24 columns.
	GridPos struct {
		X, Y, W, H int
	} `json:"gridPos"`
	// Datasource is the data source of its queries.
	Datasource struct {
		UID string `json:"uid"`
	} `json:"datasource"`
	// FieldConfig has the unit of its values, the texts and colors in which the values are shown, and the colors of series.
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
	// Query is the source of its values: a string, or an object with a query.
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

// Selected returns the query for the series from which a variable takes its values; empty if the values do not come from
// Prometheus.
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

// Fill returns a query of a dashboard as Grafana sends it if no value of a variable is selected, with a span for
// $__rate_interval.
func Fill(query, span string) string {
	return variable.ReplaceAllString(strings.ReplaceAll(query, "$__rate_interval", span), ".*")
}
