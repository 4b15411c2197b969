// Program tables writes the OpenAPI document, and the tables of the documentation whose rows come from the code. It runs in the
// root of the source tree.
package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
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

// update writes the OpenAPI document and the tables of all pages.
func update() error {
	scope, err := tablesOfKind(filepath.Join(crds, "core.oam.dev_healthscopes.yaml"), reflect.TypeFor[corev1alpha2.HealthScope]())
	if err != nil {
		return err
	}
	bundle, err := tablesOfKind(filepath.Join(crds, "k8splugin.io_resourcebundlestates.yaml"), reflect.TypeFor[k8spluginv1alpha1.ResourceBundleState]())
	if err != nil {
		return err
	}
	if err := writeOpenAPI(); err != nil {
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
		before, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		after, err := fill(string(before), tables)
		if err != nil {
			return fmt.Errorf("cannot write the tables of %s: %w", name, err)
		}
		if err := os.WriteFile(name, []byte(after), 0o644); err != nil { //nolint:gosec // It is a file of the source tree, which everybody may read.
			return err
		}
	}
	return nil
}

// writeOpenAPI writes the OpenAPI document.
func writeOpenAPI() error {
	document, err := openAPI(".")
	if err != nil {
		return fmt.Errorf("cannot make %s: %w", openAPIFile, err)
	}
	return os.WriteFile(openAPIFile, document, 0o644) //nolint:gosec // It is a file of the source tree, which everybody may read.
}
