package rsync_test

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"

	"github.com/healthscope/healthscope/controllers/rsync"
	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/deploy"
)

var _ = Describe("rsync.Enqueue", func() {
	subject := appcontext.DeploymentRef{}
	// named creates a context that names its deployment intent group.
	named := func(ctx SpecContext, id string) {
		GinkgoHelper()
		c := newComposite(id, "default", "a").add("a", edge01, "one+ConfigMap", configMap("one"))
		meta := `{"Project":"p","CompositeApp":"` + CurrentSpecReport().LeafNodeText[:4] + `","Version":"v1","DeploymentIntentGroup":"d","Namespace":"default","Level":"0"}`
		c.values["/context/"+id+"/meta/"] = meta
		put(ctx, c.values)
		s, err := store.Snapshot(ctx, id)
		Expect(err).NotTo(HaveOccurred())
		m, err := s.Meta()
		Expect(err).NotTo(HaveOccurred())
		subject, _ = m.DeploymentRef()
	}

	It("records what the user did together with the event, with a revision for each update", func(ctx SpecContext) {
		named(ctx, "1101")
		named(ctx, "1102")
		now := time.Now()
		enqueue := func(id string, event deploy.Event, from string) {
			GinkgoHelper()
			now = now.Add(time.Second)
			Expect(rsync.Enqueue(ctx, store, id, event, from, now)).To(Succeed())
		}
		enqueue("1101", deploy.EventInstantiate, "")
		enqueue("1102", deploy.EventUpdate, "1101")
		Expect(rsync.Stop(ctx, store, "1102", now)).To(Succeed())
		enqueue("1102", deploy.EventTerminate, "")
		info, err := store.GetStateInfo(ctx, subject)
		Expect(err).NotTo(HaveOccurred())
		var got []string
		var revisions []int64
		for _, a := range info.Actions {
			got, revisions = append(got, string(a.State)+" "+a.ContextID), append(revisions, a.Revision)
		}
		Expect(got).To(Equal([]string{"Instantiated 1101", "Updated 1102", "InstantiateStopped 1102", "Terminated 1102"}))
		Expect(revisions).To(Equal([]int64{1, 2, 2, 2}))
		Expect(info.StatusContextID).To(Equal("1101"))
		all := stored(ctx, "1102")
		Expect(all).To(HaveKeyWithValue("/context/1102/statusappctxid/", `"1101"`))
		Expect(all).To(HaveKeyWithValue("/context/1102/stopflag/", "false"))
		Expect(all).To(HaveKeyWithValue("/context/1102/rsync/AppContextEventQueue/",
			`{"AcQueue":[{"event":"Update","uCID":"1101","status":"Skip"},{"event":"Terminate","status":"Pending"}]}`))
	})

	It("loses no event of those that are added at the same time (R9)", func(ctx SpecContext) {
		named(ctx, "1104")
		var adding errgroup.Group
		for range 8 {
			adding.Go(func() error { return rsync.Enqueue(ctx, store, "1104", deploy.EventInstantiate, "", time.Now()) })
		}
		Expect(adding.Wait()).To(Succeed())
		Expect(strings.Count(stored(ctx, "1104")["/context/1104/rsync/AppContextEventQueue/"], `{"event":"Instantiate","status":"Pending"}`)).To(Equal(8))
	})

	It("refuses what no user may ask for, and records nothing of it", func(ctx SpecContext) {
		named(ctx, "1103")
		for want, ask := range map[string]func() error{
			`event "UpdateDelete" cannot be added`: func() error {
				return rsync.Enqueue(ctx, store, "1103", deploy.EventUpdateDelete, "1103", time.Now())
			},
			"must have one": func() error { return rsync.Enqueue(ctx, store, "1103", deploy.EventUpdate, "", time.Now()) },
			"no other event may": func() error {
				return rsync.Enqueue(ctx, store, "1103", deploy.EventTerminate, "1103", time.Now())
			},
			"updated to itself":                  func() error { return rsync.Enqueue(ctx, store, "1103", deploy.EventUpdate, "1103", time.Now()) },
			"Key doesn't exist":                  func() error { return rsync.Enqueue(ctx, store, "1103", deploy.EventUpdate, "999", time.Now()) },
			`is not possible in state "Created"`: func() error { return rsync.Enqueue(ctx, store, "1103", deploy.EventTerminate, "", time.Now()) },
		} {
			Expect(ask()).To(MatchError(ContainSubstring(want)))
		}
		info, err := store.GetStateInfo(ctx, subject)
		Expect(err).NotTo(HaveOccurred())
		Expect(info.Actions).To(BeEmpty())
		Expect(stored(ctx, "1103")).NotTo(HaveKey("/context/1103/rsync/AppContextEventQueue/"))
	})
})
