package inventory

import (
	"context"
	"fmt"
	gosync "sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/mapping"
	"github.com/healthscope/healthscope/aai/sync"
	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/tracing"
)

// vnf is the vnf-id of a VNF, whose modules are reconciled together.
type vnf string

// statuses are what modules are to be. The empty status means that nothing can be said, and that the module stays as it is.
type statuses map[aai.VFModule]aai.OperationalStatus

// add adds what one app makes of a module; the worst of all counts.
func (s statuses) add(m aai.VFModule, status aai.OperationalStatus) {
	if before, ok := s[m]; ok {
		status = mapping.Worse(before, status)
	}
	s[m] = status
}

// moduleIndex knows what modules are to be, by what the scopes say whose apps name them. It is safe for concurrent use.
type moduleIndex struct {
	mapping  mapping.Options
	registry judgements

	mu gosync.Mutex // guards the rest
	// changed is told of VNFs for whose modules there is something new.
	changed func(vnf)
	// said is what scopes that were judged say; a scope that waits to be judged says nothing of the modules that it names, and lets nobody else say it.
	said map[types.NamespacedName]statuses
	// by are the scopes that speak of modules of a VNF.
	by map[vnf]map[types.NamespacedName]bool
}

func newModuleIndex(o mapping.Options, registry judgements) *moduleIndex {
	return &moduleIndex{
		mapping: o, registry: registry, changed: func(vnf) {},
		said: map[types.NamespacedName]statuses{}, by: map[vnf]map[types.NamespacedName]bool{},
	}
}

// onChange makes the index call f for every VNF for whose modules there is something new. f must not block.
func (i *moduleIndex) onChange(f func(vnf)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.changed = f
}

// scopeExists notes a scope that exists. One that has not been judged yet may make the modules that it names worse.
func (i *moduleIndex) scopeExists(name types.NamespacedName, spec *corev1alpha2.HealthScopeSpec) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.registry.Get(name) != nil {
		return
	}
	says := statuses{}
	for _, app := range spec.Apps {
		if app.Inventory != nil {
			i.name(says, name, *app.Inventory, "")
		}
	}
	i.say(name, says)
}

// scopeJudged takes in what is new in the judgement of a scope; a scope that does not exist any more has none.
func (i *moduleIndex) scopeJudged(name types.NamespacedName) {
	i.mu.Lock()
	defer i.mu.Unlock()
	says := statuses{}
	if judged := i.registry.Get(name); judged != nil {
		for _, app := range judged.LinkedApps {
			i.name(says, name, app.Links, mapping.OperationalStatus(app.Summary))
		}
	}
	i.say(name, says)
}

// name notes what an app of a scope says of the module that it names, if it may name it.
func (i *moduleIndex) name(says statuses, scope types.NamespacedName, links corev1alpha2.InventoryLinks, status aai.OperationalStatus) {
	if m, ok := mapping.Module(scope.Namespace, links.GenericVNFID, links.VFModuleID, i.mapping); ok {
		says.add(m, status)
	}
}

// say replaces what a scope says.
func (i *moduleIndex) say(name types.NamespacedName, says statuses) {
	before := i.said[name]
	concerned := map[vnf]bool{}
	for m, status := range says {
		if was, had := before[m]; !had || was != status {
			concerned[vnf(m.GenericVNFID)] = true
		}
	}
	for m := range before {
		if _, stays := says[m]; !stays {
			concerned[vnf(m.GenericVNFID)] = true
		}
		delete(i.by[vnf(m.GenericVNFID)], name)
	}
	delete(i.said, name)
	if len(says) > 0 {
		i.said[name] = says
	}
	for m := range says {
		v := vnf(m.GenericVNFID)
		if i.by[v] == nil {
			i.by[v] = map[types.NamespacedName]bool{}
		}
		i.by[v][name] = true
	}
	for v := range concerned {
		if len(i.by[v]) == 0 {
			delete(i.by, v)
		}
		i.changed(v)
	}
}

// desired returns what is to be written of the modules of a VNF.
func (i *moduleIndex) desired(v vnf) statuses {
	i.mu.Lock()
	defer i.mu.Unlock()
	all := statuses{}
	for name := range i.by[v] {
		for m, status := range i.said[name] {
			if vnf(m.GenericVNFID) == v {
				all.add(m, status)
			}
		}
	}
	for m, status := range all {
		if status == "" {
			delete(all, m)
		}
	}
	return all
}

// vnfs returns the VNFs of which a scope names modules; with an empty name those of all scopes.
func (i *moduleIndex) vnfs(name types.NamespacedName) map[vnf]bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	all := map[vnf]bool{}
	for v, names := range i.by {
		if name == (types.NamespacedName{}) || names[name] {
			all[v] = true
		}
	}
	return all
}

// modulesTimeout bounds one pass over the modules of a VNF.
const modulesTimeout = 2 * time.Minute

// moduleSyncer is the part of sync.Syncer that the reconciler of modules uses.
type moduleSyncer interface {
	SyncModules(ctx context.Context, vnfID string, desired map[aai.VFModule]aai.OperationalStatus) (sync.ModuleReport, error)
}

// moduleReconciler keeps the operational-status of a VNF's modules in step with what was judged.
type moduleReconciler struct {
	index    *moduleIndex
	scopes   *scopeList
	clusters clusters
	syncer   moduleSyncer
	ledger   *Ledger
	paces    *paces[vnf]
}

// Reconcile has written what is new about the modules of a VNF, and reports how far that went.
func (r *moduleReconciler) Reconcile(ctx context.Context, v vnf) (ctrl.Result, error) {
	pace := r.paces.of(v)
	if early := time.Until(pace.notBefore); early > 0 {
		return ctrl.Result{RequeueAfter: early}, nil
	}
	if err := r.clusters.WaitSynced(ctx); err != nil {
		return ctrl.Result{}, nil //nolint:nilerr // The program is stopping.
	}
	if err := r.scopes.read(ctx); err != nil {
		return ctrl.Result{}, err
	}
	report, err := r.sync(ctx, v, r.index.desired(v))
	if ctx.Err() != nil {
		return ctrl.Result{}, nil //nolint:nilerr // The program is stopping, which says nothing about A&AI.
	}
	r.ledger.putModules(v, report, err, time.Now())
	logger := log.FromContext(ctx).WithValues("genericVnf", string(v))
	if report.Written > 0 {
		logger.Info("Modules written", "written", report.Written)
	}
	if err != nil {
		tracing.Failed(ctx)
		retry := pace.failed(err, time.Now())
		logger.Error(err, "Modules not up to date", "retryAfter", retry.String())
		return ctrl.Result{RequeueAfter: retry}, nil
	}
	pace.succeeded(time.Now())
	if len(report.Modules) == 0 {
		r.paces.forget(v)
		return ctrl.Result{}, nil
	}
	return ctrl.Result{RequeueAfter: max(time.Until(report.NextPass), minPause)}, nil
}

// sync makes one pass over the modules of a VNF.
func (r *moduleReconciler) sync(ctx context.Context, v vnf, desired statuses) (sync.ModuleReport, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, modulesTimeout, fmt.Errorf("the pass took longer than %s", modulesTimeout))
	defer cancel()
	return r.syncer.SyncModules(ctx, string(v), desired)
}
