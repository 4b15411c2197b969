package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/healthscope/healthscope/aai"
)

// oldestVersion and newestVersion are the schema versions that are known to have k8s-resource, as numbers.
const (
	oldestVersion = 24
	newestVersion = 32
)

// probeKey is the key of a document that does not exist.
var probeKey = aai.Key{Tenant: aai.Tenant{CloudOwner: "healthscope-probe", CloudRegionID: "healthscope-probe", TenantID: "healthscope-probe"}, ID: "healthscope-probe"}

// probeRequest returns a request for that document in a schema version.
func probeRequest(version string) request {
	return request{op: aai.OpProbe, method: http.MethodGet, path: probeKey.Path(), version: version}
}

// Probe checks whether A&AI can be reached, accepts the credentials, and serves the schema version with k8s-resource. It
// reads a document that does not exist, which every A&AI must answer in the same way, and changes nothing.
//
// If A&AI does not serve the version, Probe tries the other versions, once, and the error names those that A&AI serves. If the
// response is not one that A&AI sends, the error is of kind Misconfigured with ProblemServer.
func (c *Client) Probe(ctx context.Context) error {
	_, _, err := c.get(ctx, probeRequest(""), probeKey)
	e, ok := errors.AsType[*aai.Error](err)
	if !ok {
		if err == nil {
			c.servedVersions.Store(nil)
		}
		return err
	}
	explained := *e
	switch {
	case isUnexpectedSuccess(e), e.Kind == aai.Rejected && e.MessageID == "": // A&AI sends a message id with a refusal.
		explained.Kind, explained.Problem = aai.Misconfigured, aai.ProblemServer
	case e.Problem == aai.ProblemVersion:
		_, explained.Message = explain(e, c.options.SchemaVersion, nil) // A&AI's own message says less.
	case e.Kind == aai.Rejected:
		explained.Kind, explained.Problem = aai.Misconfigured, aai.ProblemVersion
		explained.Message = fmt.Sprintf("schema version %q has no k8s-resource here: %s", c.options.SchemaVersion, e.Message)
	}
	if explained.Problem == aai.ProblemVersion {
		explained.Message += c.describeServedVersions(ctx)
	}
	return &explained
}

// isUnexpectedSuccess reports whether an error is about a success with an unexpected response: another server sent it, or it was truncated in transit.
func isUnexpectedSuccess(e *aai.Error) bool { return e.Kind == aai.Retry && e.Status/100 == 2 }

// describeServedVersions returns a text that names the versions with k8s-resource that A&AI serves. It asks A&AI once, until Probe succeeds again. It returns an empty text if A&AI does not answer all requests.
func (c *Client) describeServedVersions(ctx context.Context) string {
	if known := c.servedVersions.Load(); known != nil {
		return *known
	}
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	var served []int
	for n := oldestVersion; n <= newestVersion; n++ {
		version := "v" + strconv.Itoa(n)
		if version == c.options.SchemaVersion {
			continue
		}
		// The request bypasses the breaker, which is open because all requests in the configured version fail.
		err := c.options.Breaker.wait(ctx, probeRequest(version))
		if err == nil {
			_, err = c.roundTrip(ctx, probeRequest(version), transactionIDFrom(ctx))
		}
		switch kind := aai.KindOf(err); {
		case isAbsent(err):
			served = append(served, n)
		case kind == aai.Retry:
			c.options.Breaker.report(ctx, 0, err)
			return ""
		}
	}
	text := "; it serves none of those from v" + strconv.Itoa(oldestVersion) + " to v" + strconv.Itoa(newestVersion)
	if len(served) > 0 {
		text = "; it serves " + formatVersions(served)
	}
	c.servedVersions.Store(&text)
	return text
}

// formatVersions returns the names of versions, with consecutive ones as a range: v24, v26 to v30.
func formatVersions(versions []int) string {
	var names []string
	for i := 0; i < len(versions); {
		last := i
		for last+1 < len(versions) && versions[last+1] == versions[last]+1 {
			last++
		}
		name := "v" + strconv.Itoa(versions[i])
		if last > i {
			name += " to v" + strconv.Itoa(versions[last])
		}
		names = append(names, name)
		i = last + 1
	}
	return strings.Join(names, ", ")
}
