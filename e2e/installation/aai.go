package installation

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/healthscope/healthscope/aai/simulator"
	"github.com/healthscope/healthscope/e2e/process"
)

// aaiUser is the user that HealthScope has in the simulated A&AI.
const aaiUser = "healthscope"

// tenantPath is the path of the tenant in A&AI.
const tenantPath = "/aai/v32/cloud-infrastructure/cloud-regions/cloud-region/" + CloudOwner + "/" + CloudRegionID + "/tenants/tenant/" + TenantID

// orderTimeout is the maximum duration of a request that changes the simulator.
const orderTimeout = 10 * time.Second

// Object is an object in A&AI.
type Object struct {
	// URI is its path below /aai/vN.
	URI string `json:"uri"`
	// Body is its document.
	Body map[string]any `json:"body"`
}

// Label returns the value of a label of a k8s-resource, which A&AI keeps as "key=value"; empty when there is none.
func (o Object) Label(key string) string {
	labels, _ := o.Body["labels"].([]any)
	for _, l := range labels {
		text, _ := l.(string)
		if value, ok := strings.CutPrefix(text, key+"="); ok {
			return value
		}
	}
	return ""
}

// Related returns the types of the objects to which a k8s-resource is related, sorted.
func (o Object) Related() []string {
	list, _ := o.Body["relationship-list"].(map[string]any)
	relationships, _ := list["relationship"].([]any)
	var related []string
	for _, r := range relationships {
		relationship, _ := r.(map[string]any)
		if kind, ok := relationship["related-to"].(string); ok {
			related = append(related, kind)
		}
	}
	slices.Sort(related)
	return related
}

// Resources returns a shell command that requests all k8s-resources from A&AI, with the required headers and password.
func (i *Installation) Resources() string {
	return fmt.Sprintf("curl -u \"$(cat %s):$(cat %s)\" -H 'Accept: application/json' -H 'X-FromAppId: demo' -H \"X-TransactionId: $RANDOM\" %s%s/k8s-resources",
		i.path("aai-user"), i.path("aai-password"), i.AAI, tenantPath)
}

// Credentials returns the user and the password for A&AI.
func (i *Installation) Credentials() (user, password string, err error) {
	secret, err := os.ReadFile(i.path("aai-password"))
	return aaiUser, string(secret), err
}

// Request is a request that A&AI has received.
type Request struct {
	// Seq is the number of the request, from 1.
	Seq uint64 `json:"sequence"`
	// Method is its HTTP method.
	Method string `json:"method"`
	// Path is its path.
	Path string `json:"path"`
	// Status is the HTTP status of the response.
	Status int `json:"status"`
}

// seed returns the objects that an orchestrator has created in A&AI before HealthScope starts: the region, the tenant, and the
// VNF with its module.
func seed() []Object {
	region := fmt.Sprintf("/cloud-infrastructure/cloud-regions/cloud-region/%s/%s", CloudOwner, CloudRegionID)
	vnf := "/network/generic-vnfs/generic-vnf/" + GenericVNFID
	return []Object{
		{region, map[string]any{"cloud-owner": CloudOwner, "cloud-region-id": CloudRegionID, "cloud-type": "k8s"}},
		{region + "/tenants/tenant/" + TenantID, map[string]any{"tenant-id": TenantID, "tenant-name": TenantID}},
		{vnf, map[string]any{"vnf-id": GenericVNFID, "vnf-name": "vfw", "vnf-type": "vfw"}},
		{vnf + "/vf-modules/vf-module/" + VFModuleID, map[string]any{"vf-module-id": VFModuleID, "is-base-vf-module": true}},
	}
}

// startSimulator starts the simulated A&AI with a user and a password, in strict mode, which logs violations.
func (i *Installation) startSimulator(ctx context.Context) error {
	data, err := json.Marshal(seed())
	if err != nil {
		return err
	}
	for name, content := range map[string]string{"aai-seed.json": string(data), "aai-user": aaiUser, "aai-password": rand.Text()} {
		if err := os.WriteFile(i.path(name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	api, err := process.ReservePort()
	if err != nil {
		return err
	}
	control, err := process.ReservePort()
	if err != nil {
		return err
	}
	i.AAI, i.Control = "http://"+loopback(api.Number), "http://"+loopback(control.Number)
	i.simulator, err = process.Start(process.Spec{
		Name: "aai", Path: filepath.Join(i.options.Bin, "aai-simulator"), Dir: i.options.Dir, LogPath: i.LogPath("aai"),
		Args: []string{
			"--listen", loopback(api.Number), "--control-listen", loopback(control.Number), "--strict",
			"--seed", i.path("aai-seed.json"), "--user", aaiUser, "--password-file", i.path("aai-password"),
		},
	})
	if err != nil {
		return err
	}
	if err := ready(ctx, i.simulator, i.Control+"/__sim/violations"); err != nil {
		return err
	}
	i.inventory = i.AAI
	if i.options.Front != nil {
		i.inventory, err = i.options.Front(i.AAI)
	}
	return err
}

// Objects returns the k8s-resources in A&AI, sorted by kind and name.
func (i *Installation) Objects(ctx context.Context) ([]Object, error) {
	var all []Object
	if err := i.control(ctx, "/__sim/state", &all); err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(o Object) bool { return !strings.Contains(o.URI, "/k8s-resource/") })
	slices.SortFunc(all, func(a, b Object) int { return strings.Compare(a.String(), b.String()) })
	return all, nil
}

// String returns Kind/name of a k8s-resource.
func (o Object) String() string { return fmt.Sprintf("%v/%v", o.Body["kind"], o.Body["name"]) }

// Requests returns the requests that A&AI has received after the request with a given number.
func (i *Installation) Requests(ctx context.Context, after uint64) ([]Request, error) {
	var all []Request
	err := i.control(ctx, fmt.Sprintf("/__sim/requests?since=%d", after), &all)
	return all, err
}

// Violations returns the log of requests that A&AI has received although a correct client would not send them.
func (i *Installation) Violations(ctx context.Context) ([]json.RawMessage, error) {
	var all []json.RawMessage
	err := i.control(ctx, "/__sim/violations", &all)
	return all, err
}

// AddFaults adds rules by which requests to A&AI fail, after the existing rules.
func (i *Installation) AddFaults(ctx context.Context, rules ...simulator.Fault) error {
	body, err := json.Marshal(rules)
	if err != nil {
		return fmt.Errorf("cannot encode faults of A&AI: %w", err)
	}
	return i.order(ctx, http.MethodPost, "/__sim/faults", body)
}

// ClearFaults removes all rules by which requests to A&AI fail.
func (i *Installation) ClearFaults(ctx context.Context) error {
	return i.order(ctx, http.MethodDelete, "/__sim/faults", nil)
}

// order sends a request that changes the simulator to its control surface.
func (i *Installation) order(ctx context.Context, method, path string, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, orderTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, i.Control+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	said, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusNoContent {
		err = fmt.Errorf("A&AI's control surface answers %s to %s %q: %s", response.Status, method, path, strings.TrimSpace(string(said)))
	}
	return errors.Join(err, response.Body.Close())
}

// control reads from the simulator's control surface.
func (i *Installation) control(ctx context.Context, path string, into any) error {
	status, body, err := get(ctx, i.Control+path, "application/json")
	if err == nil && status != http.StatusOK {
		err = errors.New(strings.TrimSpace(string(body)))
	}
	if err == nil {
		err = json.Unmarshal(body, into)
	}
	if err != nil {
		return fmt.Errorf("cannot ask A&AI for %q: %w", path, err)
	}
	return nil
}
