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
				RelationshipList: aai.RelationshipList{Relationships: []aai.Relationship{
					aai.RelationshipToGenericVNF("vnf-1"),
					{RelatedTo: "vf-module", Label: "org.onap.relationships.inventory.Uses", RelatedLink: "/aai/v32/network/x"},
				}},
			},
			want: `{"id":"1","name":"n","group":"apps","version":"v1","kind":"Deployment","namespace":"ns","labels":["a=b"],"selflink":"http://x",` +
				`"data-owner":"healthscope-x","data-source":"edge","data-source-version":"8","resource-version":"17",` +
				`"relationship-list":{"relationship":[{"related-to":"generic-vnf","related-link":"/network/generic-vnfs/generic-vnf/vnf-1"},` +
				`{"related-to":"vf-module","relationship-label":"org.onap.relationships.inventory.Uses","related-link":"/aai/v32/network/x"}]}}`,
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
