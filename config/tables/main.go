// Program tables writes the OpenAPI document, the schema of the configuration file in the Helm chart, and the tables of the
// documentation whose rows come from the code. It runs in the root of the source tree.
package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/config/valuesschema"
)

// docs is the folder of the pages, chart the folder of the Helm chart, and crds the folder of the CRDs.
const (
	docs  = "config/docs/"
	chart = "charts/healthscope/"
	crds  = "config/crd"
)

func main() {
	if err := update(); err != nil {
		fmt.Fprintf(os.Stderr, "tables: %v\n", err)
		os.Exit(1)
	}
}

// update writes the OpenAPI document, the schema and the tables of all pages.
func update() error {
	scope, err := tablesOfKind(filepath.Join(crds, "core.oam.dev_healthscopes.yaml"), reflect.TypeFor[corev1alpha2.HealthScope]())
	if err != nil {
		return err
	}
	bundle, err := tablesOfKind(filepath.Join(crds, "k8splugin.io_resourcebundlestates.yaml"), reflect.TypeFor[k8spluginv1alpha1.ResourceBundleState]())
	if err != nil {
		return err
	}
	if err := rewrite(openAPIFile, func([]byte) ([]byte, error) { return openAPI(".") }); err != nil {
		return err
	}
	if err := rewrite(chart+"values.schema.json", func(before []byte) ([]byte, error) { return valuesschema.Update(".", before) }); err != nil {
		return err
	}
	configuration, err := configurationTables(".")
	if err != nil {
		return err
	}
	healthScope, troubleshooting := conditionTables()
	maps.Copy(healthScope, map[string]table{"kubectl": scope.columns, "Writing a scope": scope.spec, "Status": scope.status, "Events": eventTable()})
	values, err := valuesTable(chart + "values.yaml")
	if err != nil {
		return err
	}
	for name, tables := range map[string]map[string]table{
		chart + "README.md":             {"Values": values},
		docs + "commands.md":            commandTables(),
		docs + "configuration.md":       configuration,
		docs + "healthscope.md":         healthScope,
		docs + "resourcebundlestate.md": {"What goes in": bundleKinds(), "Columns": bundle.columns, "Writing a bundle": bundle.spec, "Fields of status": bundle.status},
		docs + "metrics.md":             metricTables(),
		docs + "reasons.md":             reasonTables(),
		docs + "troubleshooting.md":     troubleshooting,
	} {
		if err := rewrite(name, func(before []byte) ([]byte, error) { return fill(string(before), tables) }); err != nil {
			return err
		}
	}
	return nil
}

// rewrite replaces the content of a file of the source tree.
func rewrite(name string, change func(before []byte) ([]byte, error)) error {
	before, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	after, err := change(before)
	if err != nil {
		return fmt.Errorf("cannot make %s: %w", name, err)
	}
	return os.WriteFile(name, after, 0o644) //nolint:gosec // Everybody may read it.
}
