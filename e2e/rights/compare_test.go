package rights

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// listPods and mayList are the use and the grant from which the tables derive theirs.
var (
	listPods = Use{Account: "shop/monitor", Verb: "list", Resource: "pods"}
	mayList  = Grant{Account: "shop/monitor", Role: "r", Verb: "list", Resource: "pods"}
)

func use(change func(*Use)) Use       { u := listPods; change(&u); return u }
func grant(change func(*Grant)) Grant { g := mayList; change(&g); return g }

func TestCompareTellsEveryDifference(t *testing.T) {
	in := func(namespace string) Use { return use(func(u *Use) { u.Namespace = namespace }) }
	discovery := Use{Account: "shop/monitor", Verb: "get", URL: "/apis/apps/v1"}
	status := use(func(u *Use) { u.Verb, u.Group, u.Resource, u.Name = "patch", "apps", "deployments/status", "web" })
	for name, tc := range map[string]struct {
		uses   []Use
		grants []Grant
		want   []string
	}{
		"what is granted is used": {[]Use{listPods}, []Grant{mayList}, nil},
		"nothing":                 {nil, nil, nil},
		"used in two namespaces":  {[]Use{in("a"), in("b")}, []Grant{mayList}, nil},
		"used in one namespace":   {[]Use{in("a"), in("a")}, []Grant{mayList}, []string{"granted everywhere and used in namespace a only: shop/monitor may list core/pods everywhere (role r)"}},
		"used where it is granted": {
			[]Use{in("a")}, []Grant{grant(func(g *Grant) { g.Namespace = "a" })}, nil,
		},
		"used elsewhere": {
			[]Use{in("b")}, []Grant{grant(func(g *Grant) { g.Namespace = "a" })},
			[]string{"granted and not used: shop/monitor may list core/pods in namespace a (role r)"},
		},
		"a right for a namespace is none for all": {
			[]Use{listPods}, []Grant{grant(func(g *Grant) { g.Namespace = "a" })},
			[]string{"granted and not used: shop/monitor may list core/pods in namespace a (role r)"},
		},
		"watch is not list": {
			[]Use{use(func(u *Use) { u.Verb = "watch" })}, []Grant{mayList},
			[]string{"granted and not used: shop/monitor may list core/pods everywhere (role r)"},
		},
		"another account": {
			[]Use{use(func(u *Use) { u.Account = "shop/controller" })}, []Grant{mayList},
			[]string{"granted and not used: shop/monitor may list core/pods everywhere (role r)"},
		},
		"another group": {
			[]Use{use(func(u *Use) { u.Group = "metrics.k8s.io" })}, []Grant{mayList},
			[]string{"granted and not used: shop/monitor may list core/pods everywhere (role r)"},
		},
		"a subresource is not its resource": {
			[]Use{status}, []Grant{grant(func(g *Grant) { g.Verb, g.Group, g.Resource = "patch", "apps", "deployments" })},
			[]string{"granted and not used: shop/monitor may patch apps/deployments everywhere (role r)"},
		},
		"the one object": {
			[]Use{status}, []Grant{grant(func(g *Grant) { g.Verb, g.Group, g.Resource, g.Name = "patch", "apps", "deployments/status", "web" })}, nil,
		},
		"another object": {
			[]Use{status}, []Grant{grant(func(g *Grant) { g.Verb, g.Group, g.Resource, g.Name = "patch", "apps", "deployments/status", "db" })},
			[]string{"granted and not used: shop/monitor may patch apps/deployments/status named db everywhere (role r)"},
		},
		"a URL":         {[]Use{discovery}, []Grant{grant(func(g *Grant) { *g = Grant{Account: g.Account, Verb: "get", URL: "/apis/apps/v1"} })}, nil},
		"a URL below":   {[]Use{discovery}, []Grant{{Account: "shop/monitor", Role: "r", Verb: "get", URL: "/apis"}}, []string{"granted and not used: shop/monitor may get /apis (role r)"}},
		"a wild verb":   {[]Use{listPods}, []Grant{grant(func(g *Grant) { g.Verb = "*" })}, []string{"granted with a wildcard: shop/monitor may * core/pods everywhere (role r)"}},
		"a wild group":  {[]Use{listPods}, []Grant{grant(func(g *Grant) { g.Group = "*" })}, []string{"granted with a wildcard: shop/monitor may list */pods everywhere (role r)"}},
		"all resources": {[]Use{listPods}, []Grant{grant(func(g *Grant) { g.Resource = "*" })}, []string{"granted with a wildcard: shop/monitor may list core/* everywhere (role r)"}},
		"a wild URL":    {[]Use{discovery}, []Grant{{Account: "shop/monitor", Role: "r", Verb: "get", URL: "/apis/*"}}, []string{"granted with a wildcard: shop/monitor may get /apis/* (role r)"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Compare(tc.uses, tc.grants)); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCompareFindsWhateverIsTooMuch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		uses := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) Use {
			word := func(label string) string { return rapid.StringMatching(`[a-c]{1,2}`).Draw(t, label) }
			return Use{Account: "n/" + word("account"), Verb: word("verb"), Group: word("group"), Resource: word("resource"), Namespace: word("namespace"), Name: word("name")}
		}), 1, 8, rapid.ID).Draw(t, "uses")
		grants := make([]Grant, 0, len(uses))
		for _, u := range uses {
			grants = append(grants, Grant{Account: u.Account, Verb: u.Verb, Group: u.Group, Resource: u.Resource, Namespace: u.Namespace, Name: u.Name})
		}
		if got := Compare(uses, grants); len(got) > 0 {
			t.Fatalf("each grant has its use, but: %q", got)
		}
		if got := Compare(uses[1:], grants); len(got) != 1 {
			t.Fatalf("one grant is too much: %q", got)
		}
	})
}
