package rsync_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/healthscope/healthscope/controllers/rsync"
	restapi "github.com/healthscope/healthscope/healthscope/api"
)

// groupOf is a deployment intent group that has the name of its namespace. The only app of its contexts is a ConfigMap with a
// value.
type groupOf string

func (namespace groupOf) apply(ctx context.Context, value string) (id string) {
	GinkgoHelper()
	c := rsync.CompositeApp{
		Project: "retail", Name: "shop", Version: "v1", DeploymentIntentGroup: string(namespace), Namespace: string(namespace),
		Apps: []rsync.CompositeAppMember{{Name: "web", Clusters: []string{edge01}, Manifests: []string{"web.yaml"}}},
	}
	id, err := rsync.CreateContext(ctx, store, c, func(string) ([]byte, error) { return []byte(with("web", value)), nil }, time.Now())
	Expect(err).NotTo(HaveOccurred())
	return id
}

func (namespace groupOf) path() string {
	return "/v2/projects/retail/composite-apps/shop/v1/deployment-intent-groups/" + string(namespace)
}

// serveREST serves the status REST API, and returns a function that requests a change of the group as a ServiceAccount.
func (namespace groupOf) serveREST(ctx context.Context) func(account, action, body string) (code int, answer string) {
	GinkgoHelper()
	server := httptest.NewServer(restapi.NewHandler(restapi.Options{Deployments: rsync.Groups{Store: store}, Guard: newGuard()}))
	DeferCleanup(server.Close)
	return func(account, action, body string) (int, string) {
		GinkgoHelper()
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+namespace.path()+"/"+action, strings.NewReader(body))
		Expect(err).NotTo(HaveOccurred())
		r.Header.Set("Authorization", "Bearer "+tokenOf(ctx, string(namespace), account))
		response, err := server.Client().Do(r)
		Expect(err).NotTo(HaveOccurred())
		answer, err := io.ReadAll(response.Body)
		Expect(err).NotTo(HaveOccurred())
		Expect(response.Body.Close()).To(Succeed())
		return response.StatusCode, string(answer)
	}
}

// newDeployer creates an account with the right to deploy all groups.
func newDeployer(ctx context.Context, namespace string) string {
	GinkgoHelper()
	account := newAccount(ctx, namespace)
	grant(ctx, namespace+"-deployer", rbacv1.PolicyRule{NonResourceURLs: []string{"/v2/projects/*"}, Verbs: []string{"deploy"}},
		rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account})
	Eventually(func() (bool, error) { // The API server applies the right a moment later, and the REST server would cache the refusal.
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "system:serviceaccount:" + namespace + ":" + account, NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/v2/projects/x", Verb: "deploy"},
		}}
		err := api.Create(ctx, review)
		return review.Status.Allowed, err
	}).Should(BeTrue())
	return account
}

var _ = Describe("deployment intent groups over REST", func() {
	It("are instantiated, updated, rolled back and terminated for callers with the right", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		group := groupOf(namespace)
		post := group.serveREST(ctx)
		deployer, reader := newDeployer(ctx, namespace), newAccount(ctx, namespace)
		grant(ctx, namespace+"-reader", rbacv1.PolicyRule{NonResourceURLs: []string{"/v2/*"}, Verbs: []string{"get"}},
			rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: reader})
		// accepted requests a change as the deployer, which must be accepted.
		accepted := func(action, body, answer string) {
			GinkgoHelper()
			code, got := post(deployer, action, body)
			Expect(code).To(Equal(http.StatusAccepted), got)
			Expect(got).To(Equal(answer))
		}
		refused := func(action, body string, code int, why string) {
			GinkgoHelper()
			got, answer := post(deployer, action, body)
			Expect(got).To(Equal(code), answer)
			Expect(answer).To(ContainSubstring(why))
		}
		data := func() string { return dataOf(ctx, namespace, "web") }
		start(newNetwork())

		By("refusing what there is no context for, and who has no right")
		refused("instantiate", "", http.StatusNotFound, `there is no context of deployment intent group \"retail/shop/v1/`+namespace)
		first := group.apply(ctx, "1")
		code, answer := post(reader, "instantiate", "")
		Expect(code).To(Equal(http.StatusForbidden), answer)
		refused("terminate", "", http.StatusConflict, `is not possible in state \"Created\"`)
		refused("update", "", http.StatusConflict, "is not instantiated")

		By("instantiating the context")
		accepted("instantiate", "", "")
		becomes(ctx, first, "Instantiated")
		Expect(data()).To(Equal("v1"))
		refused("update", "", http.StatusConflict, "is in force already")

		By("updating to a newer context")
		second := group.apply(ctx, "2")
		accepted("update", "", "2\n")
		becomes(ctx, first, "Updated")
		Expect(stateOf(ctx, second)).To(Equal(state("Instantiated")))
		Expect(data()).To(Equal("v2"))

		By("rolling back to what revision 1 was")
		refused("rollback", `{"spec":{"revision":"9"}}`, http.StatusNotFound, "has no revision 9")
		refused("rollback", `{"spec":{"revision":"2"}}`, http.StatusConflict, "cannot be updated to itself")
		accepted("rollback", `{"metadata":{"description":"back"},"spec":{"revision":"1"}}`, "")
		becomes(ctx, second, "Updated")
		Expect(data()).To(Equal("v1"))
		accepted("instantiate", "", "") // Refused steps would be retried.
		becomes(ctx, first, "Instantiated")

		By("terminating, and instantiating a new context")
		accepted("terminate", "", "")
		becomes(ctx, first, "Terminated")
		Expect(data()).To(Equal("absent"))
		refused("terminate", "", http.StatusConflict, `is not possible in state \"Terminated\"`)
		refused("rollback", `{"spec":{"revision":"2"}}`, http.StatusConflict, "is not instantiated")
		third := group.apply(ctx, "3")
		accepted("instantiate", "", "")
		becomes(ctx, third, "Instantiated")
		Expect(data()).To(Equal("v3"))
	})

	It("are terminated where they are, when an update was stopped before it began", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		group := groupOf(namespace)
		post := group.serveREST(ctx)
		deployer := newDeployer(ctx, namespace)
		first := group.apply(ctx, "1")
		var second string
		for _, action := range []string{"instantiate", "update", "stop", "terminate"} {
			if action == "update" {
				second = group.apply(ctx, "2")
			}
			code, answer := post(deployer, action, "")
			Expect(code).To(Equal(http.StatusAccepted), "%s: %s", action, answer)
		}
		Expect(stored(ctx, first)["/context/"+first+"/rsync/AppContextEventQueue/"]).To(ContainSubstring(`{"event":"Terminate","status":"Pending"}`))
		Expect(stored(ctx, second)["/context/"+second+"/rsync/AppContextEventQueue/"]).To(Equal(`{"AcQueue":[{"event":"Update","uCID":"` + first + `","status":"Skip"}]}`))
	})
})
