package plan_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/plan"
)

var (
	ids = []string{"a", "b", "c", "d"}
	// namespaces are the namespaces of documents. The empty one is for cluster-scoped resources.
	namespaces = []string{"", "ns", "other"}
)

func anyLinks(t *rapid.T) []aai.Relationship {
	return rapid.SliceOfNDistinct(rapid.SampledFrom([]aai.Relationship{vnf1, vnf2, aai.RelationshipToVFModule("vnf-1", "m")}), 0, 3, func(r aai.Relationship) string { return r.Target() }).Draw(t, "links")
}

// desiredDocument draws a document as the mapping returns it, with a claim for each relationship.
func desiredDocument(id string) *rapid.Generator[aai.Document] {
	return rapid.Custom(func(t *rapid.T) aai.Document {
		d := ready(id, links(anyLinks(t)...))
		d.Labels = rapid.SliceOfN(rapid.SampledFrom([]string{"hs/status=Ready", "hs/status=Failed", "hs/reason=Boom", "app=x"}), 1, 4).Draw(t, "labels")
		for _, r := range d.RelationshipList.Relationships {
			d.Labels = append(d.Labels, "hs/link="+r.Target())
		}
		d.Group = rapid.SampledFrom([]string{"", "apps"}).Draw(t, "group")
		d.DataSource = rapid.SampledFrom([]string{"edge", "core"}).Draw(t, "source")
		d.Namespace = rapid.SampledFrom(namespaces).Draw(t, "namespace")
		d.Selflink = rapid.SampledFrom([]string{"http://x", "http://x/scopes?namespace=ns", "http://x/scopes/ns/s", "http://x/scopes/other/s"}).Draw(t, "selflink")
		return d
	})
}

// currentDocument draws a document that A&AI may hold.
func currentDocument(id string) *rapid.Generator[aai.Document] {
	return rapid.Custom(func(t *rapid.T) aai.Document {
		d := desiredDocument(id).Draw(t, "document")
		d.DataOwner = rapid.SampledFrom([]string{owner, owner, owner, "CnfAdapter", ""}).Draw(t, "owner")
		d.Labels = append(d.Labels, rapid.SliceOf(rapid.SampledFrom([]string{"team=red", "team=blue", "=", "odd", vnf1Claim, vnf2Claim})).Draw(t, "more labels")...)
		d.ResourceVersion = rapid.SampledFrom([]string{"", "5"}).Draw(t, "version")
		list := anyLinks(t)
		for i, r := range list {
			list[i] = as(r)
		}
		d.RelationshipList.Relationships = list
		return d
	})
}

func anyDocuments(generator func(string) *rapid.Generator[aai.Document]) *rapid.Generator[map[aai.Key]aai.Document] {
	return rapid.Custom(func(t *rapid.T) map[aai.Key]aai.Document {
		m := map[aai.Key]aai.Document{}
		for _, id := range ids {
			if rapid.Bool().Draw(t, "has "+id) {
				m[key(id)] = generator(id).Draw(t, id)
			}
		}
		return m
	})
}

func anyGuards(t *rapid.T) plan.Guards {
	g := plan.Guards{Keys: map[aai.Key]bool{}}
	for _, id := range ids {
		g.Keys[key(id)] = rapid.IntRange(0, 4).Draw(t, "hold "+id) == 0
	}
	if rapid.Bool().Draw(t, "hold deletions") {
		part := plan.Partition{Source: rapid.SampledFrom([]string{"", "edge"}).Draw(t, "held source"), Namespace: rapid.SampledFrom(namespaces).Draw(t, "held namespace")}
		g.Deletions = map[plan.Partition]string{part: "truncated"}
	}
	return g
}

// carryOut applies operations to documents, as A&AI does. It fails the test for an operation that A&AI would reject.
func carryOut(t *rapid.T, current map[aai.Key]aai.Document, ops []plan.Operation) map[aai.Key]aai.Document {
	next := maps.Clone(current)
	for _, op := range ops {
		d, exists := next[op.Key]
		if exists == (op.Verb == plan.Create) {
			t.Fatalf("%s of %q, which exists: %t", op.Verb, op.Key.ID, exists)
		}
		related := func(r aai.Relationship) bool { return r.Target() == op.Relationship.Target() }
		list := slices.Clone(d.RelationshipList.Relationships)
		switch op.Verb {
		case plan.Create:
			d = op.Document
		case plan.Update:
			if op.ResourceVersion != d.ResourceVersion {
				t.Fatalf("%q is in version %q, and updated in %q", op.Key.ID, d.ResourceVersion, op.ResourceVersion)
			}
			d = op.Document
			d.RelationshipList.Relationships = list
		case plan.Relate:
			if slices.ContainsFunc(list, related) {
				t.Fatalf("%q has the relationship to %q already", op.Key.ID, op.Relationship.Target())
			}
			list = append(list, op.Relationship)
			d.RelationshipList.Relationships = list
		case plan.Unrelate:
			d.RelationshipList.Relationships = slices.DeleteFunc(list, related)
		case plan.Delete:
			delete(next, op.Key)
			continue
		}
		next[op.Key] = d
	}
	return next
}

func TestPlansConverge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		desired := anyDocuments(desiredDocument).Draw(t, "desired")
		current := anyDocuments(currentDocument).Draw(t, "current")
		guards := anyGuards(t)
		first := plan.Diff(desired, current, guards, options)
		after := carryOut(t, current, first.Operations)
		second := plan.Diff(desired, after, guards, options)
		for _, op := range second.Operations {
			if op.Verb != plan.Update {
				t.Fatalf("the second plan does more than drop claims: %+v", op)
			}
		}
		after = carryOut(t, after, second.Operations)
		third := plan.Diff(desired, after, guards, options)
		if len(third.Operations) > 0 {
			t.Fatalf("the third plan is not empty: %+v", third.Operations)
		}
		if diff := cmp.Diff(first.Conflicts, third.Conflicts); diff != "" {
			t.Fatalf("conflicts change by themselves:\n%s", diff)
		}
		checkDesired(t, desired, after, guards)
		checkUntouched(t, desired, current, after, guards)
	})
}

// checkDesired checks that our part of the documents is as desired.
func checkDesired(t *rapid.T, desired, after map[aai.Key]aai.Document, guards plan.Guards) {
	for k, want := range desired {
		got, exists := after[k]
		if guards.Keys[k] || exists && got.DataOwner != owner {
			continue
		}
		if !exists {
			t.Fatalf("%q is missing", k.ID)
		}
		if diff := cmp.Diff(sorted(want.Labels), sorted(slices.DeleteFunc(slices.Clone(got.Labels), isForeign))); diff != "" {
			t.Fatalf("labels of %q, -want +got:\n%s", k.ID, diff)
		}
		for _, r := range want.RelationshipList.Relationships {
			if !slices.Contains(targets(got), r.Target()) {
				t.Fatalf("%q lacks the relationship to %q", k.ID, r.Target())
			}
		}
		if got.Group != want.Group || got.DataSource != want.DataSource {
			t.Fatalf("fields of %q: got %+v, want %+v", k.ID, got, want)
		}
	}
}

// checkUntouched checks that documents that are held or not ours are unchanged. It also checks the deletions, and that documents
// of ours keep the parts of others.
func checkUntouched(t *rapid.T, desired, current, after map[aai.Key]aai.Document, guards plan.Guards) {
	for k, before := range current {
		got, exists := after[k]
		_, wanted := desired[k]
		switch {
		case before.DataOwner != owner || guards.Keys[k]:
			if diff := cmp.Diff(before, got); diff != "" {
				t.Fatalf("%q was touched:\n%s", k.ID, diff)
			}
		case !wanted && isHeld(before, guards):
			if !exists {
				t.Fatalf("%q was deleted from a held part", k.ID)
			}
		case !wanted:
			if exists {
				t.Fatalf("%q was not deleted", k.ID)
			}
		default:
			checkKept(t, before, got)
		}
	}
}

// isHeld reports whether the document may come from a partition that is held.
func isHeld(d aai.Document, guards plan.Guards) bool {
	for part := range guards.Deletions {
		sources := part.Source == "" || part.Source == d.DataSource
		scoped := strings.Contains(d.Selflink, "/scopes/")
		if sources && (part.Namespace == "" || !scoped || part.Namespace == d.Namespace || strings.Contains(d.Selflink, "/scopes/"+part.Namespace+"/")) {
			return true
		}
	}
	return false
}

// checkKept checks that labels and relationships of others are still on a document of ours.
func checkKept(t *rapid.T, before, got aai.Document) {
	for _, label := range before.Labels {
		if isForeign(label) && !slices.Contains(got.Labels, label) {
			t.Fatalf("%q lost the label %q of others", got.ID, label)
		}
	}
	for _, r := range before.RelationshipList.Relationships {
		claimed := slices.Contains(before.Labels, "hs/link="+r.Target())
		if !claimed && !slices.Contains(targets(got), r.Target()) {
			t.Fatalf("%q lost the relationship to %q of others", got.ID, r.Target())
		}
	}
}

func isForeign(label string) bool {
	return !strings.HasPrefix(label, "hs/") && !strings.HasPrefix(label, "app=")
}

func sorted(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}

func targets(d aai.Document) []string {
	list := make([]string, 0, len(d.RelationshipList.Relationships))
	for _, r := range d.RelationshipList.Relationships {
		list = append(list, r.Target())
	}
	return list
}

func TestDiffOfEqualsIsEmpty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		documents := anyDocuments(desiredDocument).Draw(t, "documents")
		if diff := cmp.Diff(plan.Plan{}, plan.Diff(documents, documents, plan.Guards{}, options)); diff != "" {
			t.Fatalf("-want +got:\n%s", diff)
		}
	})
}

func TestOrderDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		desired := anyDocuments(desiredDocument).Draw(t, "desired")
		current := anyDocuments(currentDocument).Draw(t, "current")
		guards := anyGuards(t)
		shuffle := func(documents map[aai.Key]aai.Document) map[aai.Key]aai.Document {
			m := map[aai.Key]aai.Document{}
			for k, d := range documents {
				d.Labels = rapid.Permutation(d.Labels).Draw(t, "labels of "+k.ID)
				d.RelationshipList.Relationships = rapid.Permutation(d.RelationshipList.Relationships).Draw(t, "links of "+k.ID)
				m[k] = d
			}
			return m
		}
		want := plan.Diff(desired, current, guards, options)
		got := plan.Diff(shuffle(desired), shuffle(current), guards, options)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("-want +got:\n%s", diff)
		}
	})
}
