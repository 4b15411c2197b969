package sync

import (
	"context"
	"errors"
	"net/http"
	"slices"
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

// withoutLock calls do with the lock released: other workers continue while a request is in flight.
func (p *pass) withoutLock(do func()) {
	p.mu.Unlock()
	defer p.mu.Lock()
	do()
}

// read reads an object.
func (p *pass) read(ctx context.Context, key aai.Key) {
	var d aai.Document
	var found bool
	var err error
	p.withoutLock(func() { d, found, err = p.options.Client.GetK8sResource(ctx, key) })
	if err != nil {
		p.fail(plan.Operation{Key: key}, err, 1)
		return
	}
	v := p.visit(key)
	v.uncertain = false
	p.markFresh(v)
	p.observe(v.object, nil)
	if found {
		p.observe(v.object, &d)
	}
}

// opOf returns what the request does that performs an operation.
func opOf(v plan.Verb) aai.Op {
	switch v {
	case plan.Create:
		return aai.OpPut
	case plan.Update:
		return aai.OpUpdate
	case plan.Unrelate:
		return aai.OpUnrelate
	case plan.Relate:
		return aai.OpRelate
	case plan.Delete:
	}
	return aai.OpDelete
}

// send sends operations in one request: a plain request for a single operation, otherwise a bulk request, which applies all or none.
func (p *pass) send(ctx context.Context, ops []plan.Operation) (err error) {
	id := uuid.NewString()
	writes, events := make([]client.Write, len(ops)), make([]WriteEvent, len(ops))
	for i, op := range ops {
		writes[i] = client.Write{Op: opOf(op.Verb), Key: op.Key, Document: op.Document, ResourceVersion: op.ResourceVersion, Relationship: op.Relationship}
		writes[i].Document.ResourceVersion = op.ResourceVersion
		events[i] = WriteEvent{Verb: op.Verb, Key: op.Key, Resource: p.visit(op.Key).resource(), Labels: op.Document.Labels, TransactionID: id}
	}
	p.withoutLock(func() {
		requestCtx := client.WithTransaction(ctx, id)
		if len(writes) == 1 {
			err = p.options.Client.Write(requestCtx, writes[0])
		} else {
			err = p.options.Client.BulkWrite(requestCtx, writes)
		}
		if aai.NotSent(err) {
			return
		}
		for _, e := range events {
			e.Err = err
			p.options.Audit(e)
		}
	})
	return err
}

// write sends operations in one request.
func (p *pass) write(ctx context.Context, ops []plan.Operation) {
	err := p.send(ctx, ops)
	if err == nil {
		p.acknowledge(ops)
		return
	}
	e, ok := errors.AsType[*aai.Error](err)
	refused := ok && (e.Kind == aai.Rejected || e.Kind == aai.Conflict || e.Kind == aai.MissingDependency)
	if refused && len(ops) > 1 { // Nothing was done, and it is not known which is to blame.
		if maxOps := p.maxBulk.Load(); e.Code == aai.CodePayloadLimit && int(maxOps) >= len(ops) { // There will be fewer from now on.
			p.maxBulk.CompareAndSwap(maxOps, int32(max(len(ops)/2, 1)))
		}
		p.detectStaleList(e, ops)
		for _, op := range ops {
			p.visit(op.Key).batchLimit = len(ops) / 2
		}
		return
	}
	for _, op := range ops {
		if !p.retryConflict(op, err) {
			p.fail(op, err, len(ops))
		}
	}
}

// detectStaleList marks the list as stale when A&AI rejects operations together because of a precondition. The precondition is always a version;
// for a creation, that there is none. For a bulk request, A&AI's code does not tell these apart. Documents whose creation is rejected exist, and if
// one was not in the list, many may be missing there. Of other operations there must be so many that reading the tenant again costs less than
// reading each document.
func (p *pass) detectStaleList(e *aai.Error, ops []plan.Operation) {
	if p.stale || p.relisted || p.listing || e.Status != http.StatusPreconditionFailed {
		return
	}
	others := slices.ContainsFunc(ops, func(op plan.Operation) bool { return op.Verb != plan.Create })
	if !others || len(ops)*100 > p.documents() {
		p.stale = true
	}
}

// acknowledge records that A&AI has acknowledged operations.
func (p *pass) acknowledge(ops []plan.Operation) {
	now := p.options.Clock()
	for _, op := range ops {
		v := p.visit(op.Key)
		p.applyWrite(v.object, op)
		p.markFresh(v)
		p.tried, v.acknowledged, v.batchLimit = true, now, 0
		delete(p.missingTargets, targets(op))
		if v.failure.reason != ReasonMissingDependency || hasDependency(op) {
			v.failure = failure{}
		}
	}
}

// retryConflict reports whether an object must be read and retried in this pass after a conflict with another writer.
func (p *pass) retryConflict(op plan.Operation, err error) bool {
	v := p.visit(op.Key)
	if aai.KindOf(err) != aai.Conflict || v.conflictRetries >= maxConflictRetries || v.failure.conflictCount > 0 {
		return false
	}
	v.conflictRetries++
	v.uncertain = true
	return true
}

// missingDependency returns the error that this pass recorded for a missing dependency of an operation; nil if there is none.
func (p *pass) missingDependency(op plan.Operation) error {
	if err := p.missing[p.tenant.Path()]; err != nil && op.Verb == plan.Create {
		return err
	}
	return p.missing[targets(op)]
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
