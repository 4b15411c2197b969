package main

import (
	"strings"
	"testing"
)

// TestConfigurationTables checks one line of each kind.
func TestConfigurationTables(t *testing.T) {
	got, err := configurationTables("../..")
	if err != nil {
		t.Fatal(err)
	}
	for heading, lines := range map[string][]string{
		"Fields": {
			"| `kind` | string, only `Configuration` | required |  |",
			"| `fleet` | object | none | How the controller reaches other clusters. |",
		},
		"monitor": {
			"| `monitor.labelKeys` | list of strings | `emco/deployment-id` | The label keys that tie objects to bundles. |",
			"| `monitor.kinds[].kind` | string | required | The kind, such as `Certificate`. |",
		},
		"appContext":       {"| `appContext.timeoutSeconds` | integer, from 1 to 15 | `5` | The deadline of one call. |"},
		"fleet":            {"| `fleet.burst` | integer, at least 1 | `30` | How many requests may go to one cluster at once. |"},
		"inventory":        {"| `inventory.policy` | string, one of `sync`, `upsert-only` | `sync` | What may be done in A&AI: `sync` creates, changes and deletes; `upsert-only` never deletes. |"},
		"healthCheckExprs": {"| `healthCheckExprs[].match.name` | string | none | The name of the one object. |"},
	} {
		for _, want := range lines {
			if !strings.Contains(got[heading].String(), want+"\n") {
				t.Errorf("%s has no line %s", heading, want)
			}
		}
	}
}
