package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/plan"
)

const owner = "healthscope-lab"

var (
	options = plan.Options{Owner: owner, LabelPrefix: "hs/", LabelKeys: []string{"app"}}
	tenant  = aai.Tenant{CloudOwner: "o", CloudRegionID: "r", TenantID: "t"}
	vnf1    = aai.RelationshipToGenericVNF("vnf-1")
	vnf2    = aai.RelationshipToGenericVNF("vnf-2")
)

const (
	vnf1Claim = "hs/link=/network/generic-vnfs/generic-vnf/vnf-1"
	vnf2Claim = "hs/link=/network/generic-vnfs/generic-vnf/vnf-2"
)

// as returns a relationship as A&AI shows it.
func as(r aai.Relationship) aai.Relationship {
	r.Label, r.RelatedLink = "tosca.relationships.HostedOn", "/aai/v32"+r.RelatedLink
	return r
}

func key(id string) aai.Key { return aai.Key{Tenant: tenant, ID: id} }

// ready returns a desired document with the changes.
func ready(id string, changes ...func(*aai.Document)) aai.Document {
	d := aai.Document{
		ID: id, Name: "n-" + id, Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "ns",
		Labels: []string{"hs/status=Ready"}, Selflink: "http://x", DataOwner: owner, DataSource: "edge",
	}
	for _, change := range changes {
		change(&d)
	}
	return d
}

func labels(l ...string) func(*aai.Document) { return func(d *aai.Document) { d.Labels = l } }

func links(r ...aai.Relationship) func(*aai.Document) {
	return func(d *aai.Document) { d.RelationshipList.Relationships = r }
}

func stored(version string) func(*aai.Document) {
	return func(d *aai.Document) { d.ResourceVersion = version }
}

func foreign(d *aai.Document) { d.DataOwner = "CnfAdapter" }

func documents(list ...aai.Document) map[aai.Key]aai.Document {
	m := map[aai.Key]aai.Document{}
	for _, d := range list {
		m[key(d.ID)] = d
	}
	return m
}

func TestDiff(t *testing.T) {
	cases := map[string]struct {
		desired, current map[aai.Key]aai.Document
		guards           plan.Guards
		want             plan.Plan
	}{
		"nothing to do": {
			desired: documents(ready("a")),
			current: documents(ready("a", stored("5"))),
		},
		"create, with relationships inside and without a version": {
			desired: documents(ready("a", labels("hs/status=Ready", "app=x", "app=x"), links(vnf2, vnf1, vnf2), stored("9"))),
			want: plan.Plan{Operations: []plan.Operation{
				{Verb: plan.Create, Key: key("a"), Document: ready("a", labels("app=x", "hs/status=Ready"), links(vnf1, vnf2))},
			}},
		},
		"change of state": {
			desired: documents(ready("a", labels("hs/reason=Boom", "hs/status=Failed"))),
			current: documents(ready("a")),
			want: plan.Plan{Operations: []plan.Operation{
				{Verb: plan.Update, Key: key("a"), Document: ready("a", labels("hs/reason=Boom", "hs/status=Failed"))},
			}},
		},
		"labels are a set": {
			desired: documents(ready("a", labels("hs/status=Ready", "app=x"))),
			current: documents(ready("a", labels("app=x", "hs/status=Ready", "app=x"))),
		},
		"labels of others are no difference": {
			desired: documents(ready("a")),
			current: documents(ready("a", labels("team=red", "hs/status=Ready"))),
		},
		"labels of others are carried over": {
			desired: documents(ready("a", labels("hs/status=Failed"))),
			current: documents(ready("a", labels("team=red", "no-equals-sign", "hs/status=Ready", "=odd"))),
			want: plan.Plan{Operations: []plan.Operation{
				{Verb: plan.Update, Key: key("a"), Document: ready("a", labels("=odd", "hs/status=Failed", "no-equals-sign", "team=red"))},
			}},
		},
		"labels of ours that are not desired go": {
			desired: documents(ready("a")),
			current: documents(ready("a", labels("hs/status=Ready", "hs/reason=Yesterday", "app=old"))),
			want: plan.Plan{Operations: []plan.Operation{
				{Verb: plan.Update, Key: key("a"), Document: ready("a", labels("hs/status=Ready"))},
			}},
		},
		"same state, since when is not known: the time stays": {
			desired: documents(ready("a")),
			current: documents(ready("a", labels("hs/since=2026-01-02T03:04:05Z", "hs/status=Ready", "theirs=1"))),
		},
		"same state, another time": {
			desired: documents(ready("a", labels("hs/since=2026-05-05T05:05:05Z", "hs/status=Ready"))),
			current: documents(ready("a", labels("hs/since=2026-01-02T03:04:05Z", "hs/status=Ready"))),
			want: plan.Plan{Operations: []plan.Operation{
				{Verb: plan.Update, Key: key("a"), Document: ready("a", labels("hs/since=2026-05-05T05:05:05Z", "hs/status=Ready"))},
			}},
		},
		"another state, since when is not known: the time goes": {
			desired: documents(ready("a", labels("hs/status=Failed"))),
			current: documents(ready("a", labels("hs/since=2026-01-02T03:04:05Z", "hs/status=Ready"))),
			want: plan.Plan{Operations: []plan.Operation{
				{Verb: plan.Update, Key: key("a"), Document: ready("a", labels("hs/status=Failed"))},
			}},
		},
		"every field of ours": {
			desired: documents(ready("a")),
			current: documents(ready("a", func(d *aai.Document) {
				d.Name, d.Group, d.Version, d.Kind, d.Namespace, d.Selflink, d.DataSource = "", "", "", "", "", "", ""
			})),
			want: plan.Plan{Operations: []plan.Operation{{Verb: plan.Update, Key: key("a"), Document: ready("a")}}},
		},
		"fields of others": {
			desired: documents(ready("a")),
			current: documents(ready("a", func(d *aai.Document) { d.DataSourceVersion = "17" })),
		},
		"a field that becomes empty": {
			desired: documents(ready("a", func(d *aai.Document) { d.Group = "" })),
			current: documents(ready("a")),
			want:    plan.Plan{Operations: []plan.Operation{{Verb: plan.Update, Key: key("a"), Document: ready("a", func(d *aai.Document) { d.Group = "" })}}},
		},
		"delete, with the version that is known": {
			current: documents(ready("a", stored("5")), ready("b")),
			want: plan.Plan{Operations: []plan.Operation{
				{Verb: plan.Delete, Key: key("a"), ResourceVersion: "5"},
				{Verb: plan.Delete, Key: key("b")},
			}},
		},
		"documents of others stay": {
			current: documents(ready("a", foreign), ready("b", func(d *aai.Document) { d.DataOwner = "" })),
		},
		"a place that others have": {
			desired: documents(ready("b", labels("hs/status=Failed"), links(vnf1)), ready("a")),
			current: documents(ready("b", foreign), ready("a", func(d *aai.Document) { d.DataOwner = "" })),
			want:    plan.Plan{Conflicts: []plan.Conflict{{Key: key("a")}, {Key: key("b"), Owner: "CnfAdapter"}}},
		},
		"held documents are neither created, changed nor deleted": {
			desired: documents(ready("a"), ready("b", labels("hs/status=Failed"))),
			current: documents(ready("b"), ready("c")),
			guards:  plan.Guards{Keys: map[aai.Key]bool{key("a"): true, key("b"): true, key("c"): true}},
		},
		"a held source keeps its documents, and they may change": {
			desired: documents(ready("a", labels("hs/status=Failed"))),
			current: documents(ready("a"), ready("b"), ready("c", func(d *aai.Document) { d.DataSource = "core" })),
			guards:  plan.Guards{Deletions: map[plan.Partition]string{{Source: "edge"}: "truncated"}},
			want: plan.Plan{Operations: []plan.Operation{
				{Verb: plan.Update, Key: key("a"), Document: ready("a", labels("hs/status=Failed"))},
				{Verb: plan.Delete, Key: key("c")},
			}, Skipped: []plan.Skipped{{Key: key("b"), Source: "edge", Cause: plan.CauseSource, Message: "truncated"}}},
		},
		"relationship missing": {
			desired: documents(ready("a", labels("hs/status=Ready", vnf1Claim), links(vnf1))),
			current: documents(ready("a", labels("hs/status=Ready", vnf1Claim))),
			want:    plan.Plan{Operations: []plan.Operation{{Verb: plan.Relate, Key: key("a"), Relationship: vnf1}}},
		},
		"relationship as A&AI shows it": {
			desired: documents(ready("a", labels("hs/status=Ready", vnf1Claim), links(vnf1))),
			current: documents(ready("a", labels("hs/status=Ready", vnf1Claim), links(as(vnf1)))),
		},
		"relationship of others": {
			desired: documents(ready("a")),
			current: documents(ready("a", links(as(vnf1)))),
		},
		"relationship of ours that is not desired: the claim stays until it is gone": {
			desired: documents(ready("a")),
			current: documents(ready("a", labels("hs/status=Ready", vnf1Claim), links(as(vnf1)))),
			want:    plan.Plan{Operations: []plan.Operation{{Verb: plan.Unrelate, Key: key("a"), Relationship: as(vnf1)}}},
		},
		"a claim on a relationship that is gone": {
			desired: documents(ready("a")),
			current: documents(ready("a", labels("hs/status=Ready", vnf1Claim))),
			want:    plan.Plan{Operations: []plan.Operation{{Verb: plan.Update, Key: key("a"), Document: ready("a", labels("hs/status=Ready"))}}},
		},
		"relationship replaced: the old one goes before the new one comes": {
			desired: documents(ready("a", labels("hs/status=Ready", vnf2Claim), links(vnf2))),
			current: documents(ready("a", labels("hs/status=Ready", vnf1Claim), links(as(vnf1)))),
			want: plan.Plan{Operations: []plan.Operation{
				{Verb: plan.Update, Key: key("a"), Document: ready("a", labels(vnf1Claim, vnf2Claim, "hs/status=Ready"))},
				{Verb: plan.Unrelate, Key: key("a"), Relationship: as(vnf1)},
				{Verb: plan.Relate, Key: key("a"), Relationship: vnf2},
			}},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := plan.Diff(c.desired, c.current, c.guards, options)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestWithoutAPrefixLabelsAreOfOthers(t *testing.T) {
	o := plan.Options{Owner: owner}
	got := plan.Diff(documents(ready("a", labels())), documents(ready("a", labels("team=red"))), plan.Guards{}, o)
	if diff := cmp.Diff(plan.Plan{}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
