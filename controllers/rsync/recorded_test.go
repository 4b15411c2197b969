package rsync_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	clientv3 "go.etcd.io/etcd/client/v3"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/healthscope/healthscope/healthscope/deploy"
)

// change is a change of a key of etcd; the value is empty when the key was deleted.
type change struct{ key, value string }

// now returns the current revision of etcd.
func now(ctx context.Context) int64 {
	GinkgoHelper()
	response, err := raw.Get(ctx, "/")
	Expect(err).NotTo(HaveOccurred())
	return response.Header.Revision
}

// changesSince returns the changes of rsync to contexts since a revision of etcd, in order.
func changesSince(ctx context.Context, revision int64, ids ...string) []change {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	const end = "/context-end"
	put(ctx, values{end: "x"})
	var all []change
	for r := range raw.Watch(ctx, "/activecontext/", clientv3.WithRange("/context0"), clientv3.WithRev(revision+1)) {
		Expect(r.Err()).NotTo(HaveOccurred())
		for _, e := range r.Events {
			key := string(e.Kv.Key)
			if key == end {
				return all
			}
			if parts := strings.Split(key, "/"); slices.Contains(ids, parts[2]) && (isOfRsync(key, "") || parts[1] == "activecontext") {
				all = append(all, change{key, string(e.Kv.Value)})
			}
		}
	}
	return all
}

// recordedChanges reads the recorded changes of EMCO's rsync, in order. ids replace 42 and 43, the ids of the recorded contexts.
func recordedChanges(name string, ids ...string) []change {
	GinkgoHelper()
	data, err := os.ReadFile("../../healthscope/deploy/testdata/" + name)
	Expect(err).NotTo(HaveOccurred())
	text := string(data)
	for i, id := range ids {
		text = strings.NewReplacer("/"+[]string{"42", "43"}[i]+"/", "/"+id+"/", `"`+[]string{"42", "43"}[i]+`"`, `"`+id+`"`).Replace(text)
	}
	var all []change
	for line := range strings.Lines(text) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		all = append(all, change{fields[1], fields[2]})
	}
	return all
}

// sequences returns the values that each key had one after the other.
func sequences(changes []change) map[string][]string {
	all := map[string][]string{}
	for _, c := range changes {
		if have := all[c.key]; len(have) == 0 || have[len(have)-1] != c.value {
			all[c.key] = append(have, c.value)
		}
	}
	return all
}

// first and last return the index of the first and the last change whose key and value contain all parts.
func first(changes []change, parts ...string) int { return slices.IndexFunc(changes, isAbout(parts)) }

func last(changes []change, parts ...string) int {
	reversed := slices.Clone(changes)
	slices.Reverse(reversed)
	return len(changes) - 1 - slices.IndexFunc(reversed, isAbout(parts))
}

func isAbout(parts []string) func(change) bool {
	return func(c change) bool {
		return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(c.key+" "+c.value, part) })
	}
}

// becomeReady gives a Deployment the status of one whose pods are ready.
func becomeReady(ctx context.Context, namespace, name string) {
	GinkgoHelper()
	d := &appsv1.Deployment{}
	Expect(exists(ctx, d, namespace, name)).To(BeTrue())
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1}
	Expect(api.Status().Update(ctx, d)).To(Succeed())
}

var _ = Describe("rsync and a recorded context whose apps depend on each other", func() {
	It("writes what EMCO's rsync writes, in its order", func(ctx SpecContext) {
		const id = "1240"
		put(ctx, recorded("dependency.created.tsv", id))
		start(newNetwork())
		begin := now(ctx)
		enqueue(ctx, id, deploy.EventInstantiate)
		Eventually(statuses).WithContext(ctx).WithArguments(id).Should(And(
			HaveKeyWithValue("db/p1+edge01/db2-svc+Service", "Applied"), HaveKeyWithValue("db/p1+edge02/db2-svc+Service", "Applied")))
		Expect(statuses(ctx, id)).To(HaveKeyWithValue("web/p1+edge01/web2+Deployment", ""))
		becomeReady(ctx, "default", "db2")
		ready := time.Now()
		becomes(ctx, id, "Instantiated")
		Expect(time.Since(ready)).To(BeNumerically(">=", 2*time.Second), "the context has a wait of two seconds")

		Expect(stored(ctx, id)).To(Equal(recorded("dependency.instantiated.tsv", id)))
		ours, theirs := changesSince(ctx, begin, id), recordedChanges("dependency.events.tsv", id)
		Expect(sequences(ours)).To(Equal(sequences(theirs)))
		for _, changes := range [][]change{ours, theirs} {
			Expect(first(changes, "/app/web/")).To(BeNumerically(">", last(changes, "/app/db/", "/status/", "Applied")))
			Expect(last(changes, "/app/web/")).To(BeNumerically("<", last(changes, "AppContextEventQueue", "Done")))
		}
		terminate(ctx, id)
	})
})
