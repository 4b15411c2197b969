package aai_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/healthscope/healthscope/aai"
)

func TestDocumentOnTheWire(t *testing.T) {
	cases := map[string]struct {
		document aai.Document
		want     string
	}{
		"required fields are there when empty": {
			document: aai.Document{ID: "1", Name: "n", Version: "v1", Kind: "Service", Selflink: "http://x"},
			want:     `{"id":"1","name":"n","group":"","version":"v1","kind":"Service","namespace":"","selflink":"http://x"}`,
		},
		"everything": {
			document: aai.Document{
				ID: "1", Name: "n", Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "ns", Labels: []string{"a=b"}, Selflink: "http://x",
				DataOwner: "healthscope-x", DataSource: "edge", DataSourceVersion: "8", ResourceVersion: "17",
				RelationshipList: aai.RelationshipList{Relationships: []aai.Relationship{aai.RelationshipToGenericVNF("vnf-1")}},
			},
			want: `{"id":"1","name":"n","group":"apps","version":"v1","kind":"Deployment","namespace":"ns","labels":["a=b"],"selflink":"http://x",` +
				`"data-owner":"healthscope-x","data-source":"edge","data-source-version":"8","resource-version":"17",` +
				`"relationship-list":{"relationship":[{"related-to":"generic-vnf","related-link":"/network/generic-vnfs/generic-vnf/vnf-1"}]}}`,
		},
		"an empty list of relationships is not an absent one": {
			document: aai.Document{RelationshipList: aai.RelationshipList{Relationships: []aai.Relationship{}}},
			want:     `{"id":"","name":"","group":"","version":"","kind":"","namespace":"","selflink":"","relationship-list":{"relationship":[]}}`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			encoded, err := json.Marshal(c.document)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(encoded)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			var back aai.Document
			if err := json.Unmarshal(encoded, &back); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.document, back); diff != "" {
				t.Errorf("-sent +read:\n%s", diff)
			}
		})
	}
}

func TestDocumentAsAAIAnswers(t *testing.T) {
	const answer = `{"id":"13dd","name":"vault","group":"apps","version":"v1","kind":"Deployment","namespace":"testns2","labels":["b=2","a=1"],
		"selflink":"https://x","data-owner":"someone","data-source":"cluster-a","resource-version":"1763600000345","relationship-list":{"relationship":[
		{"related-to":"generic-vnf","relationship-label":"tosca.relationships.HostedOn","related-link":"/aai/v32/network/generic-vnfs/generic-vnf/vnf-1",
		"relationship-data":[{"relationship-key":"generic-vnf.vnf-id","relationship-value":"vnf-1"}]}]}}`
	want := aai.Document{
		ID: "13dd", Name: "vault", Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "testns2", Labels: []string{"b=2", "a=1"},
		Selflink: "https://x", DataOwner: "someone", DataSource: "cluster-a", ResourceVersion: "1763600000345",
		RelationshipList: aai.RelationshipList{Relationships: []aai.Relationship{
			{RelatedTo: "generic-vnf", Label: "tosca.relationships.HostedOn", RelatedLink: "/aai/v32/network/generic-vnfs/generic-vnf/vnf-1"},
		}},
	}
	var got aai.Document
	if err := json.Unmarshal([]byte(answer), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got.RelationshipList.Relationships[0].Target() != aai.RelationshipToGenericVNF("vnf-1").Target() {
		t.Error("the relationship that was read does not have the target of the one that is made")
	}
}
