package sync

import (
	"context"
	"strings"

	"github.com/google/uuid"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/client"
	"github.com/healthscope/healthscope/aai/plan"
	"github.com/healthscope/healthscope/healthscope"
)

// WriteEvent is a write to one object, for the audit.
type WriteEvent struct {
	// Verb is the operation.
	Verb plan.Verb
	// Key is the key of the document.
	Key aai.Key
	// Resource is the resource that the document describes.
	Resource healthscope.Key
	// Labels are the labels that were sent; nil when there were none.
	Labels []string
	// TransactionID is the X-TransactionId of the request, by which A&AI's own logs know it.
	TransactionID string
	// Err is why the write failed, or why its result is not known; nil when A&AI has acknowledged it.
	Err error
}

// execute sends operations in one request: a plain request for a single operation, otherwise a bulk request, which applies all or none.
func (p *pass) execute(ctx context.Context, ops []plan.Operation) error {
	id := uuid.NewString()
	ctx = client.WithTransaction(ctx, id)
	var err error
	if len(ops) == 1 {
		err = executeOne(ctx, p.options.Client, ops[0])
	} else {
		writes := make([]client.Write, len(ops))
		for i, op := range ops {
			writes[i] = client.Write{
				Op: opByVerb[op.Verb], Key: op.Key, Document: withResourceVersion(op), ResourceVersion: op.ResourceVersion, Relationship: op.Relationship,
			}
		}
		err = p.options.Client.BulkWrite(ctx, writes)
	}
	if aai.NotSent(err) {
		return err
	}
	for _, op := range ops {
		p.options.Audit(WriteEvent{Verb: op.Verb, Key: op.Key, Resource: p.resourceOf(op.Key), Labels: op.Document.Labels, TransactionID: id, Err: err})
	}
	return err
}

// resourceOf returns the resource that an object describes. It takes the lock.
func (p *pass) resourceOf(key aai.Key) healthscope.Key {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.resource(key)
}

// opByVerb maps the verb of an operation to the request that performs it.
var opByVerb = map[plan.Verb]aai.Op{
	plan.Create: aai.OpPut, plan.Update: aai.OpUpdate, plan.Unrelate: aai.OpUnrelate, plan.Relate: aai.OpRelate, plan.Delete: aai.OpDelete,
}

// withResourceVersion returns the document that an operation stores, with the version that it replaces.
func withResourceVersion(op plan.Operation) aai.Document {
	d := op.Document
	d.ResourceVersion = op.ResourceVersion
	return d
}

// executeOne turns one operation into one request.
func executeOne(ctx context.Context, c *client.Client, op plan.Operation) error {
	switch op.Verb {
	case plan.Create:
		return c.PutK8sResource(ctx, op.Key, op.Document)
	case plan.Update:
		return c.UpdateK8sResource(ctx, op.Key, withResourceVersion(op))
	case plan.Unrelate:
		return c.DeleteRelationship(ctx, op.Key, op.Relationship)
	case plan.Relate:
		return c.PutRelationship(ctx, op.Key, op.Relationship)
	case plan.Delete:
	}
	return c.DeleteK8sResource(ctx, op.Key, op.ResourceVersion)
}

// targets names the targets of relationships that an operation needs to exist; empty when it needs none.
func targets(op plan.Operation) string {
	needs := op.Needs()
	names := make([]string, 0, len(needs))
	for _, r := range needs {
		names = append(names, r.Target())
	}
	return strings.Join(names, " ")
}
