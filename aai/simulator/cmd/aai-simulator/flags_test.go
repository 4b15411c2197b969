package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHelpSaysEverything(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"--help"}, io.Discard, &out); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("run() = %v, want help", err)
	}
	var c settings
	c.flags(io.Discard).VisitAll(func(f *flag.Flag) {
		if !strings.Contains(out.String(), "\n  --"+f.Name) {
			t.Errorf("the help lacks --%s", f.Name)
		}
		if f.Usage == "" {
			t.Errorf("--%s has no description", f.Name)
		}
	})
	for _, example := range []string{"curl", "/__sim/faults", "127.0.0.1:8447/aai/v32"} {
		if !strings.Contains(out.String(), example) {
			t.Errorf("the help lacks %q", example)
		}
	}
}

func TestThePageNamesEveryFlag(t *testing.T) {
	page, err := os.ReadFile("../../../../config/docs/simulator.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `--([a-z-]+)` \\| (?:`([^`]*)`|none) \\|").FindAllStringSubmatch(string(page), -1) {
		documented[row[1]] = row[2]
	}
	want := map[string]string{}
	var c settings
	c.flags(io.Discard).VisitAll(func(f *flag.Flag) { want[f.Name] = f.DefValue })
	if diff := cmp.Diff(want, documented); diff != "" {
		t.Errorf("flags and their defaults (-code +page):\n%s", diff)
	}
}

func TestFlagsReachTheSimulator(t *testing.T) {
	urls := start(t, 2, "--listen", "127.0.0.1:0", "--control-listen", "127.0.0.1:0", "--base-path", "/inventory", "--versions", "v24,v30,v32",
		"--default-version", "v30", "--bulk-limit", "1", "--read-timeout", "1ms", "--implied-delete", "test=generic-vnf", "--version-override", "any",
		"--one-sided-events", "--shallow-events", "--reject")
	client := newClient(t, nil)
	api := urls["aai"] + "/inventory/"
	var seeded struct {
		VNFs []struct {
			Version string `json:"resource-version"`
		} `json:"generic-vnf"`
	}
	status, body := get(t, client, api+"latest/network/generic-vnfs", "", "")
	if err := json.Unmarshal([]byte(body), &seeded); err != nil || len(seeded.VNFs) != 2 {
		t.Fatalf("the VNFs there are without --seed: status %d: %s", status, body)
	}
	send := func(method, url, body string) int {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", "application/json")
		r.Header.Set("X-FromAppId", "test")
		r.Header.Set("X-TransactionId", method+url+body)
		r.Header.Set("Content-Type", "application/json")
		response, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil {
			t.Fatal(err)
		}
		return response.StatusCode
	}
	vnf := api + "v32/network/generic-vnfs/generic-vnf/"
	operation := `{"action":"delete","uri":"/network/generic-vnfs/generic-vnf/vfw-9","body":{}}`
	for _, tc := range []struct {
		name, method, url, body string
		want                    int
	}{
		{"--reject", http.MethodPut, vnf + "x", `{"vnf-type":"t","nonsense":1}`, 400},
		{"--implied-delete", http.MethodPut, vnf + "vfw-1", `{"vnf-type":"t","vf-modules":{},"resource-version":"` + seeded.VNFs[0].Version + `"}`, 200},
		{"--version-override", http.MethodDelete, vnf + "vfw-2?resource-version=any", "", 204},
		{"a relationship", http.MethodPut, vnf + "vfw-1/relationship-list/relationship",
			`{"related-link":"/cloud-infrastructure/cloud-regions/cloud-region/k8s-provider/edge-region"}`, 200},
		{"--bulk-limit", http.MethodPost, api + "v32/bulk/single-transaction", `{"operations":[` + operation + "," + operation + `]}`, 400},
		{"one fault", http.MethodPost, urls["control"] + "/__sim/faults", `[{"method":"GET","delay":"9m"}]`, 204},
	} {
		if status := send(tc.method, tc.url, tc.body); status != tc.want {
			t.Errorf("%s: status %d, want %d", tc.name, status, tc.want)
		}
	}
	if status, body := get(t, client, api+"v24/network/generic-vnfs", "", ""); status != 400 || !strings.Contains(body, "SVC7406") {
		t.Errorf("--read-timeout: status %d: %s", status, body)
	}
	checkEvents(t, client, urls["control"]+"/__sim/events")
}

// checkEvents asserts that events are in v30, without children and without other ends.
func checkEvents(t *testing.T, client *http.Client, url string) {
	t.Helper()
	_, body := get(t, client, url, "", "")
	var events []struct {
		Header struct {
			Type string `json:"entity-type"`
			Link string `json:"entity-link"`
		} `json:"event-header"`
		Entity map[string]any `json:"entity"`
	}
	if err := json.Unmarshal([]byte(body), &events); err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, e := range events {
		seen[e.Header.Type]++
		if !strings.HasPrefix(e.Header.Link, "/inventory/v30/") {
			t.Errorf("--default-version: the event is of %s", e.Header.Link)
		}
		if e.Header.Type == "generic-vnf" && e.Entity["vf-modules"] != nil {
			t.Errorf("--shallow-events: the event shows %v", e.Entity)
		}
	}
	if diff := cmp.Diff(map[string]int{"generic-vnf": 3, "vf-module": 2}, seen); diff != "" {
		t.Errorf("--one-sided-events (-want +got):\n%s", diff)
	}
}

func TestNoSeed(t *testing.T) {
	urls := start(t, 2, "--listen", "127.0.0.1:0", "--control-listen", "127.0.0.1:0", "--seed", "none")
	if _, state := get(t, newClient(t, nil), urls["control"]+"/__sim/state", "", ""); state != "[]\n" {
		t.Errorf("the inventory has %s", state)
	}
}
