package sync

import (
	"context"
	"strings"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/client"
	"github.com/healthscope/healthscope/aai/plan"
)

// execute turns one operation into one request.
func execute(ctx context.Context, c *client.Client, op plan.Operation) error {
	switch op.Verb {
	case plan.Create:
		return c.PutK8sResource(ctx, op.Key, op.Document)
	case plan.Update:
		return c.PatchK8sResource(ctx, op.Key, op.Patch)
	case plan.Unrelate:
		return c.DeleteRelationship(ctx, op.Key, op.Relationship)
	case plan.Relate:
		return c.PutRelationship(ctx, op.Key, op.Relationship)
	case plan.Delete:
	}
	return c.DeleteK8sResource(ctx, op.Key, op.ResourceVersion)
}

// dependencies name what an operation needs to exist: by A&AI's code for its absence, what is absent.
func dependencies(op plan.Operation) map[string]string {
	switch op.Verb {
	case plan.Create:
		links := op.Document.RelationshipList.Relationships
		targets := make([]string, 0, len(links))
		for _, r := range links {
			targets = append(targets, r.Target())
		}
		return map[string]string{
			aai.CodeNodeNotFound:   op.Key.Tenant.Path(),
			aai.CodeTargetNotFound: strings.Join(targets, " "),
		}
	case plan.Relate:
		return map[string]string{aai.CodeTargetNotFound: op.Relationship.Target()}
	case plan.Update, plan.Unrelate, plan.Delete:
	}
	return nil
}
