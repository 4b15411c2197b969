package inventory

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/mapping"
	"github.com/healthscope/healthscope/aai/sync"
	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/healthscope"
)

// manyResources is the number of resources of the benchmarks, in scopes of ten.
const manyResources = 100_000

// installation is everything that the inventory computes, without A&AI.
type installation struct {
	mapping mapping.Options
	scopes  judgedScopes
	inputs  *inputs
	status  *Status
	// documents are the documents in A&AI.
	documents map[aai.Key]*aai.Document
}

// newInstallation returns an installation in which each namespace goes to its own tenant. The resources are in that number of
// clusters. Nothing is judged.
func newInstallation(namespaces, clusters int) *installation {
	i := &installation{mapping: options(), scopes: judgedScopes{}, documents: map[aai.Key]*aai.Document{}}
	i.mapping.Regions = nil
	for n := range namespaces {
		namespace := fmt.Sprintf("ns-%02d", n)
		i.mapping.Regions = append(i.mapping.Regions, configv1alpha1.Region{Cluster: "*", Namespace: namespace, CloudOwner: "o", CloudRegionID: "r", TenantID: namespace})
		for s := range manyResources / 10 / namespaces {
			j := judged()
			for r := range 10 {
				m := member(namespace, fmt.Sprintf("web-%04d-%d", s, r), healthscope.Ready)
				m.Cluster = fmt.Sprintf("edge-%02d", s%clusters)
				j.Members = append(j.Members, placed(m)...)
			}
			i.scopes[name(namespace, fmt.Sprintf("scope-%04d", s))] = j
		}
	}
	i.inputs = newInputs(i.mapping, configv1alpha1.SelectScoped, i.scopes, nil)
	i.status = newStatus(i.inputs)
	return i
}

// start judges all scopes, and makes a pass over each tenant.
func (i *installation) start() {
	for n, j := range i.scopes {
		i.inputs.scopeUpdated(n, noon, 1)
		i.inputs.scopeJudged(n)
		i.status.Report(n, j.Members, nil)
	}
	for _, tenant := range i.mapping.Tenants() {
		i.pass(tenant, sync.Synced)
	}
}

// pass makes a pass over a tenant. The changed documents get the given state. It returns their number.
func (i *installation) pass(tenant aai.Tenant, state sync.State) int {
	n := i.inputs.take(tenant, oneCluster{})
	r := sync.Report{Changed: map[aai.Key]sync.ObjectStatus{}}
	for key, w := range n.Desired {
		if !reflect.DeepEqual(i.documents[key], w.Document) {
			i.documents[key] = w.Document
			r.Changed[key] = sync.ObjectStatus{State: state, Resource: healthscope.Key{
				Cluster: w.Document.DataSource, Group: w.Document.Group, Kind: w.Document.Kind, Namespace: w.Document.Namespace, Name: w.Document.Name,
			}}
		}
	}
	i.status.recordPass(tenant, n, r, nil, noon)
	return len(r.Changed)
}

// heap returns the number of bytes of the heap in use.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkStart measures the cost of a start without the requests, and the memory that is held afterwards, including the
// documents.
func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		i := newInstallation(50, 1)
		before := heap()
		b.StartTimer()
		i.start()
		b.StopTimer()
		b.ReportMetric(float64(heap()-before)/manyResources, "held-B/resource")
		runtime.KeepAlive(i)
		b.StartTimer()
	}
}

// BenchmarkChange measures the cost of one changed resource without the requests: the judgement of its scope, a pass over its
// tenant, and the report to the scope.
func BenchmarkChange(b *testing.B) {
	for _, namespaces := range []int{50, 1} {
		b.Run(fmt.Sprintf("%d tenants", namespaces), func(b *testing.B) {
			i := newInstallation(namespaces, 50/namespaces)
			i.start()
			scope, tenant := name("ns-00", "scope-0007"), i.mapping.Tenants()[0]
			before := cpu(b)
			for n := 0; b.Loop(); n++ {
				members := slices.Clone(i.scopes[scope].Members)
				members[0].Member = new(in(*members[0].Member, []healthscope.State{healthscope.Failed, healthscope.Ready}[n%2]))
				i.scopes[scope] = judged(members...)
				i.inputs.scopeJudged(scope)
				if changed := i.pass(tenant, []sync.State{sync.Pending, sync.Synced}[n%2]); changed != 1 {
					b.Fatal(changed)
				}
				i.status.Report(scope, members, nil)
			}
			b.ReportMetric(float64(cpu(b)-before)/float64(b.N), "cpu-ns/op")
		})
	}
}

// cpu returns the CPU time that the process has used. On a machine with other work it is more exact than the clock.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
