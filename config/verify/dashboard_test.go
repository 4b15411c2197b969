package verify

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/healthscope/healthscope/e2e/observed"
)

func readDashboard(t *testing.T) observed.Dashboard {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, "config", "grafana", "healthscope.json"))
	if err != nil {
		t.Fatal(err)
	}
	d, err := observed.ReadDashboard(data)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestPanelsCanBeRead(t *testing.T) {
	d := readDashboard(t)
	metrics := metrics()
	if d.UID != "healthscope" {
		t.Errorf("the uid is %q: links to the dashboard break", d.UID)
	}
	ids := map[int]bool{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.Title == "" {
			t.Errorf("panel %d: the id is not its own, or it has no title", p.ID)
		}
		ids[p.ID] = true
		if p.Type == "row" {
			continue
		}
		if p.Description == "" {
			t.Errorf("panel %q: say what it shows", p.Title)
		}
		if p.FieldConfig.Defaults.Unit == "" || p.Datasource.UID != "${datasource}" || len(p.Targets) == 0 {
			t.Errorf("panel %q: it needs a unit, the data source that is chosen, and a query", p.Title)
		}
		for _, target := range p.Targets {
			checkQuery(t, fmt.Sprintf("panel %q", p.Title), target.Expr, metrics)
		}
	}
	for _, v := range d.Templating.List {
		if query := v.Selected(); query != "" {
			checkQuery(t, fmt.Sprintf("variable %q", v.Name), query, metrics)
		} else if v.Type != "datasource" {
			t.Errorf("variable %q: it has no values", v.Name)
		}
	}
}
