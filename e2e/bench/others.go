package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/go-cmp/cmp"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/e2e/installation"
)

// othersOwner is the data-owner of the documents that HealthScope must not touch.
const othersOwner = "others"

// plantOthers writes documents of others into A&AI, beside ours, and returns them.
func (s *soaking) plantOthers(ctx context.Context) ([]installation.Object, error) {
	c, err := s.inventoryClient()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	for i := range 5 {
		id := fmt.Sprintf("others-%d", i)
		err := c.PutK8sResource(ctx, aai.Key{Tenant: inventoryTenant, ID: id}, aai.Document{
			ID: id, Name: id, Version: "v1", Kind: "Service", Namespace: inventoryNamespace, Selflink: "http://others", DataOwner: othersOwner, DataSource: "local",
			Labels: []string{stateLabel + "=Failed"},
		})
		if err != nil {
			return nil, fmt.Errorf("cannot write a document of others: %w", err)
		}
	}
	return s.others(ctx)
}

// others returns the documents of others in A&AI, with their versions.
func (s *soaking) others(ctx context.Context) ([]installation.Object, error) {
	objects, err := s.hs.Objects(ctx)
	return slices.DeleteFunc(objects, func(o installation.Object) bool { return o.Body["data-owner"] != othersOwner }), err
}

// verifyOthers makes sure that documents of others in A&AI are as they were, also in version, and that A&AI has found no fault with any request.
func (s *soaking) verifyOthers(ctx context.Context, before []installation.Object) error {
	after, err := s.others(ctx)
	if err != nil {
		return err
	}
	if diff := cmp.Diff(before, after); diff != "" {
		return fmt.Errorf("documents of others in A&AI have changed: -before +after:\n%s", diff)
	}
	violations, err := s.hs.Violations(ctx)
	if err == nil && len(violations) > 0 {
		err = fmt.Errorf("A&AI found fault with %d requests, first with %s", len(violations), violations[0])
	}
	return err
}
