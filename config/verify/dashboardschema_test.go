package verify

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/bargauge"
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/statetimeline"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// TestDashboardHasTheFormOfGrafana validates the dashboard against Grafana's own schemas, so that all fields are known and no
// option is misspelt.
func TestDashboardHasTheFormOfGrafana(t *testing.T) {
	for _, panel := range []variants.PanelcfgConfig{
		bargauge.VariantConfig(), stat.VariantConfig(), statetimeline.VariantConfig(), table.VariantConfig(), timeseries.VariantConfig(),
	} {
		cog.NewRuntime().RegisterPanelcfgVariant(panel)
	}
	cog.NewRuntime().RegisterDataqueryVariant(prometheus.VariantConfig())
	data, err := os.ReadFile(filepath.Join(root, "config", "grafana", "healthscope.json"))
	if err != nil {
		t.Fatal(err)
	}
	if data, err = withoutSourcesFields(data); err != nil {
		t.Fatal(err)
	}
	var d dashboard.Dashboard
	if err := d.UnmarshalJSONStrict(data); err != nil {
		t.Error(err)
	}
	if err := d.Validate(); err != nil {
		t.Error(err)
	}
}

// withoutSourcesFields removes from annotations the fields that belong to the data source and are in no schema of Grafana. They
// define how the result of a Prometheus query is shown as text
// (https://grafana.com/docs/grafana/latest/datasources/prometheus/annotations/).
func withoutSourcesFields(data []byte) ([]byte, error) {
	var d map[string]any
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, err
	}
	annotations, _ := d["annotations"].(map[string]any)
	list, _ := annotations["list"].([]any)
	for _, entry := range list {
		if annotation, ok := entry.(map[string]any); ok {
			delete(annotation, "titleFormat")
			delete(annotation, "textFormat")
		}
	}
	return json.Marshal(d)
}
