package rsync_test

import (
	"encoding/json"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/healthscope/healthscope/controllers/rsync"
	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/deploy"
	"github.com/healthscope/healthscope/healthscope/status"
)

// transcript collects all texts that users may see.
type transcript struct {
	mu  sync.Mutex
	all strings.Builder
}

func (t *transcript) add(prefix, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all.WriteString(prefix + " " + text + "\n")
}

func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all.String()
}

// json adds a document.
func (t *transcript) json(document any) {
	GinkgoHelper()
	data, err := json.Marshal(document)
	Expect(err).NotTo(HaveOccurred())
	t.add("document", string(data))
}

// isSecretOfContext matches the keys in which a context holds a Secret.
var isSecretOfContext = regexp.MustCompile(`^/context/[^/]+/app/[^/]+/cluster/[^/]+/resource/[^/]+\+Secret/$`)

var _ = Describe("the values of a context's Secrets", func() {
	// The values begin with hunter, and so in base64 with aHVudGVy.
	const (
		before  = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: hunter1, old: hunter0}\ndata: {token: aHVudGVyMg==}\n"
		after   = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: hunter3}\ndata: {token: aHVudGVyNA==, more: aHVudGVyNQ==}\n"
		refused = "---\napiVersion: v1\nkind: Secret\nmetadata: {name: wrong}\ndata: {token: 'hunter6!'}\n"
		broken  = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: hunter7: x}\n"
	)

	It("are in the context alone, whatever is done with it", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		said, n := &transcript{}, newNetwork()
		start(n, func(o *rsync.Options) { o.Logger = funcr.New(said.add, funcr.Options{Verbosity: 10}) })
		contextOf := func(manifest string) (string, error) {
			c := shop(namespace)
			c.Apps = []rsync.CompositeAppMember{{Name: "a", Clusters: []string{edge01}, Manifests: []string{"s.yaml"}}}
			return rsync.CreateContext(ctx, store, c, manifests{"s.yaml": manifest}.read, time.Now())
		}
		look := func(id string) {
			GinkgoHelper()
			said.json(rsync.PreviewInstantiation(ctx, planOf(ctx, id), n.Access))
			said.json(rsync.PreviewTermination(ctx, planOf(ctx, id), n.Access))
			subject := appcontext.GroupRef("retail", "shop", "v1", namespace)
			view, err := store.View(ctx, subject, id)
			Expect(err).NotTo(HaveOccurred())
			for _, kind := range []string{"rsync", "all"} {
				q, err := status.ParseQuery(url.Values{"output": {"detail"}, "type": {kind}})
				Expect(err).NotTo(HaveOccurred())
				said.json(status.New(status.Input{Subject: subject, View: view, Contents: status.Decode(view, nil)}, q))
			}
		}
		_, err := contextOf(broken)
		Expect(err).To(HaveOccurred())
		said.add("error", err.Error())
		first, err := contextOf(before)
		Expect(err).NotTo(HaveOccurred())
		look(first)
		instantiate(ctx, first)
		look(first)

		By("changing a value as another manager, which makes a conflict")
		s := &corev1.Secret{}
		Expect(exists(ctx, s, namespace, "s")).To(BeTrue())
		Expect(s.Data).To(Equal(map[string][]byte{"password": []byte("hunter1"), "old": []byte("hunter0"), "token": []byte("hunter2")}))
		s.Data["password"] = []byte("hunter8")
		Expect(api.Update(ctx, s, client.FieldOwner("another"))).To(Succeed())
		ends(ctx, first, deploy.EventInstantiate, "InstantiateFailed")
		Expect(exists(ctx, s, namespace, "s")).To(BeTrue())
		Expect(s.Data).To(HaveKeyWithValue("password", []byte("hunter8")))
		look(first)
		Expect(api.Delete(ctx, s)).To(Succeed())
		instantiate(ctx, first)

		By("updating it to one of which a part is refused, and to one that is not")
		last := first
		for _, u := range []struct{ manifest, want string }{{before + refused, "InstantiateFailed"}, {after, "Instantiated"}} {
			id, err := contextOf(u.manifest)
			Expect(err).NotTo(HaveOccurred())
			plan, err := rsync.ReadUpdate(ctx, store, first, id)
			Expect(err).NotTo(HaveOccurred())
			said.json(rsync.PreviewUpdate(ctx, plan, n.Access))
			update(ctx, first, id)
			becomes(ctx, id, u.want)
			look(id)
			last = id
		}
		Expect(exists(ctx, s, namespace, "s")).To(BeTrue())
		Expect(s.Data).To(Equal(map[string][]byte{"password": []byte("hunter3"), "token": []byte("hunter4"), "more": []byte("hunter5")}))
		terminate(ctx, last)
		Expect(exists(ctx, s, namespace, "s")).To(BeFalse())
		look(last)

		all, err := raw.Get(ctx, "/", clientv3.WithPrefix())
		Expect(err).NotTo(HaveOccurred())
		for _, kv := range all.Kvs {
			if !isSecretOfContext.Match(kv.Key) {
				said.add(string(kv.Key), string(kv.Value))
			}
		}
		Expect(said.String()).To(And(
			ContainSubstring("A cluster refused"), ContainSubstring(`conflict with \"another\"`), ContainSubstring(`"data.password"`), ContainSubstring("/context/"+first+"/status/"),
			Not(ContainSubstring("hunter")), Not(ContainSubstring("aHVudGVy"))))
	})
})
