package client_test

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/client"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	user     = "AAI-user"
	password = "s3cr3t:pass word"
)

var (
	tenant = aai.Tenant{CloudOwner: "k8s owner", CloudRegionID: "r:1", TenantID: "t=1"}
	key    = aai.Key{Tenant: tenant, ID: "13dd"}
	vnf    = aai.RelationshipToGenericVNF("vnf-1")
)

const (
	tenantPath = "/aai/v32/cloud-infrastructure/cloud-regions/cloud-region/k8s%20owner/r%3A1/tenants/tenant/t%3D1"
	keyPath    = tenantPath + "/k8s-resources/k8s-resource/13dd"
)

func document(id string) aai.Document {
	return aai.Document{ID: id, Name: "n", Version: "v1", Kind: "Service", Namespace: "ns", Labels: []string{"hs/status=Ready"}, Selflink: "http://x", DataOwner: "healthscope-lab"}
}

// received is a request as the server received it.
type received struct {
	Method, Path, Query, Body string
	Header                    http.Header
}

// server responds with a function and records the requests.
type server struct {
	*httptest.Server
	mu       sync.Mutex
	requests []received
}

func (s *server) received() []received {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]received{}, s.requests...)
}

func serve(t *testing.T, answer http.HandlerFunc) *server {
	t.Helper()
	s := newServer(answer)
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func newServer(answer http.HandlerFunc) *server {
	s := &server{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.mu.Lock()
		s.requests = append(s.requests, received{Method: r.Method, Path: r.URL.EscapedPath(), Query: r.URL.RawQuery, Body: string(body), Header: r.Header})
		s.mu.Unlock()
		answer(w, r)
	}))
	return s
}

// transport is an A&AI without a network, which can be used in a bubble of package synctest.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// inProcess returns a transport that passes requests to a handler.
func inProcess(answer http.HandlerFunc) transport {
	return func(r *http.Request) (*http.Response, error) {
		w := httptest.NewRecorder()
		answer(w, r)
		if err := r.Context().Err(); err != nil {
			return nil, err
		}
		return w.Result(), nil
	}
}

// through makes a client use a transport.
func through(answer transport) func(*client.Options) {
	return func(o *client.Options) { o.BaseURL, o.Transport = "http://aai.example", answer }
}

// connect returns a client of a server, after the changes to its options.
func connect(t *testing.T, url string, changes ...func(*client.Options)) *client.Client {
	t.Helper()
	o := client.Options{
		BaseURL:     url,
		Timeout:     5 * time.Second,
		Credentials: func() (string, string, error) { return user, password, nil },
	}
	for _, change := range changes {
		change(&o)
	}
	c, err := client.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// inVersion returns a document that replaces the document with the given resource-version.
func inVersion(version string, labels ...string) aai.Document {
	d := document(key.ID)
	d.Labels, d.ResourceVersion = labels, version
	return d
}

// update replaces a document, as an example of a write.
func update(ctx context.Context, c *client.Client) error {
	return c.Write(ctx, client.Write{Op: aai.OpUpdate, Key: key})
}

// calls are all calls of the client, by the operation that their errors name.
var calls = map[string]func(context.Context, *client.Client) error{
	"probe": func(ctx context.Context, c *client.Client) error { return c.Probe(ctx) },
	"list": func(ctx context.Context, c *client.Client) error {
		_, err := c.ListK8sResources(ctx, tenant, "healthscope-lab")
		return err
	},
	"get":      func(ctx context.Context, c *client.Client) error { _, _, err := c.GetK8sResource(ctx, key); return err },
	"put":      write(client.Write{Op: aai.OpPut, Key: key, Document: document(key.ID)}),
	"update":   write(client.Write{Op: aai.OpUpdate, Key: key, Document: inVersion("17 3", "a=b")}),
	"delete":   write(client.Write{Op: aai.OpDelete, Key: key, ResourceVersion: "17 3"}),
	"relate":   write(client.Write{Op: aai.OpRelate, Key: key, Relationship: vnf}),
	"unrelate": write(client.Write{Op: aai.OpUnrelate, Key: key, Relationship: vnf}),
	"bulk": func(ctx context.Context, c *client.Client) error {
		return c.BulkWrite(ctx, []client.Write{
			{Op: aai.OpPut, Key: key, Document: document(key.ID)}, {Op: aai.OpDelete, Key: key, ResourceVersion: "17 3"},
		})
	},
	"tenant":  func(ctx context.Context, c *client.Client) error { _, err := c.HasTenant(ctx, tenant); return err },
	"target":  func(ctx context.Context, c *client.Client) error { _, err := c.HasTarget(ctx, vnf); return err },
	"modules": func(ctx context.Context, c *client.Client) error { _, err := c.ListVFModules(ctx, "vnf-1"); return err },
	"status": func(ctx context.Context, c *client.Client) error {
		return c.SetOperationalStatus(ctx, aai.VFModule{GenericVNFID: "vnf-1", ID: "m"}, aai.InServicePath, "17 3")
	},
}

func write(w client.Write) func(context.Context, *client.Client) error {
	return func(ctx context.Context, c *client.Client) error { return c.Write(ctx, w) }
}

// failure returns err as an *aai.Error, and checks that its text contains no secret.
func failure(t *testing.T, err error) *aai.Error {
	t.Helper()
	e, ok := errors.AsType[*aai.Error](err)
	if !ok {
		t.Fatalf("error %v is not an *aai.Error", err)
	}
	for _, secret := range []string{password, base64.StdEncoding.EncodeToString([]byte(user + ":" + password))} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("the error tells a secret: %v", err)
		}
	}
	return e
}

// refusal returns an error body of A&AI.
func refusal(exception, messageID string, variables ...string) string {
	return `{"requestError":{"` + exception + `":{"messageId":"` + messageID + `","text":"Some text (msg=%1) (ec=%2)","variables":["` + strings.Join(variables, `","`) + `"]}}}`
}
