package client

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"github.com/healthscope/healthscope/aai"
)

// MaxBulk is the maximum number of operations in one bulk request in A&AI's default configuration.
const MaxBulk = 30

// Write is one write of a document, or of one of its relationships.
type Write struct {
	// Op is what the write does.
	//
	//   - OpPut creates the document, whose resource-version must be empty. The error is Conflict if it already exists, and
	//     MissingDependency if its tenant or the target of a relationship does not exist.
	//   - OpUpdate replaces the version of the document that Document carries, and keeps the relationships if Document has no
	//     list of them. A PATCH would send less, but A&AI does not check its version, so that a label which another client
	//     sets in the meantime would be lost.
	//   - OpDelete deletes the version ResourceVersion of the document.
	//   - OpRelate and OpUnrelate add and remove the relationship, and succeed if that was done before. The error is
	//     MissingDependency if the target to add does not exist.
	//
	// Except for OpPut, the error is Conflict if the document does not exist, or not in that version.
	Op aai.Op
	// Key is the key of the document.
	Key aai.Key
	// Document is the document to store.
	Document aai.Document
	// ResourceVersion is the version to delete.
	ResourceVersion string
	// Relationship is the relationship.
	Relationship aai.Relationship
}

// request returns the request that does the write alone.
func (w Write) request() request {
	req := request{op: w.Op, method: http.MethodPut, path: w.Key.Path()}
	switch w.Op {
	case aai.OpPut, aai.OpUpdate:
		req.body = w.Document
	case aai.OpRelate, aai.OpUnrelate:
		req.path += "/relationship-list/relationship"
		req.body = w.Relationship
		if w.Op == aai.OpUnrelate {
			req.method = http.MethodDelete
		}
	default:
		req.method, req.parameters = http.MethodDelete, []string{"resource-version", w.ResourceVersion}
	}
	return req
}

// bulkOperation is the JSON form of a Write. The body is mandatory, even for a delete.
type bulkOperation struct {
	Action string `json:"action"`
	URI    string `json:"uri"`
	Body   any    `json:"body"`
}

// Write does one write. After an error of kind Retry, it is not known whether it was done.
func (c *Client) Write(ctx context.Context, w Write) error { return c.write(ctx, w.request()) }

// BulkWrite does all writes in order in one transaction, or none of them. After an
// error of kind Retry, it is not known whether they were done. An error of another kind means
// that nothing was done; it does not reliably identify the write that
// caused it. The code CodePayloadLimit means that there are too many writes.
func (c *Client) BulkWrite(ctx context.Context, writes []Write) error {
	operations := make([]bulkOperation, len(writes))
	for i, w := range writes {
		req := w.request()
		operations[i] = bulkOperation{strings.ToLower(req.method), req.pathAndQuery(), req.body}
		if req.body == nil {
			operations[i].Body = struct{}{}
		}
	}
	req := request{op: aai.OpBulk, method: http.MethodPost, path: "/bulk/single-transaction", body: map[string]any{"operations": operations}}
	var response struct {
		Responses []struct {
			Status int `json:"response-status-code"`
		} `json:"operation-responses"`
	}
	_, err := c.read(ctx, req, &response, func() error {
		if len(response.Responses) != len(writes) {
			return fmt.Errorf("it has %d responses for %d operations", len(response.Responses), len(writes))
		}
		for i, r := range response.Responses {
			if r.Status != successStatus(writes[i].Op) {
				return fmt.Errorf("operation %d has the status %d", i, r.Status)
			}
		}
		return nil
	})
	return err
}

// HasTenant reports whether a tenant exists.
func (c *Client) HasTenant(ctx context.Context, tenant aai.Tenant) (bool, error) {
	return c.exists(ctx, aai.OpTenant, tenant.Path(), "tenant-id", tenant.TenantID)
}

// HasTarget reports whether the target of a relationship exists.
func (c *Client) HasTarget(ctx context.Context, r aai.Relationship) (bool, error) {
	property, id := r.TargetID()
	return c.exists(ctx, aai.OpTarget, r.Target(), property, id)
}

// exists reports whether the object at a path exists and has the id as the value of the property.
func (c *Client) exists(ctx context.Context, op aai.Op, path, property, id string) (bool, error) {
	req := request{op: op, method: http.MethodGet, path: path, parameters: []string{"nodes-only", "true"}}
	var response map[string]any
	_, err := c.read(ctx, req, &response, func() error {
		has, _ := response[property].(string)
		if version, _ := response["resource-version"].(string); has != id || version == "" {
			return fmt.Errorf("it has the %s %q and the resource-version %q", property, sanitize(has), sanitize(version))
		}
		return nil
	})
	if isAbsent(err) {
		return false, nil
	}
	return err == nil, err
}

// transactionIDKey is the key of a transaction id in a context.
type transactionIDKey struct{}

// WithTransaction returns a context for one request, which carries the given X-TransactionId instead of a new one.
func WithTransaction(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, transactionIDKey{}, id)
}

// transactionIDFrom returns the transaction id in a context, or a new one if there is none.
func transactionIDFrom(ctx context.Context) string {
	if id, ok := ctx.Value(transactionIDKey{}).(string); ok {
		return id
	}
	return uuid.NewString()
}
