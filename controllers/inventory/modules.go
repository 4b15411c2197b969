package inventory

import (
	"context"
	"fmt"
	"maps"
	"slices"
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

// statuses are the desired statuses of modules. The empty status means that the status is unknown, and that the module stays as it is.
type statuses map[aai.VFModule]aai.OperationalStatus

// add adds the status that one app gives a module; the module gets the worst of all.
func (s statuses) add(m aai.VFModule, status aai.OperationalStatus) {
	if before, ok := s[m]; ok {
		status = mapping.Worse(before, status)
	}
	s[m] = status
}

// moduleInputs are what the desired status of modules is computed from: what scopes say whose apps name them. It is safe for concurrent use.
type moduleInputs struct {
	mapping  mapping.Options
	registry judgements

	mu gosync.Mutex // guards the rest
	// wake is called for every VNF whose modules have changed.
	wake func(vnf)
	// byScope is what each scope says of the modules that it names. A scope that has not been judged says nothing of them, and lets no other scope say it.
	byScope map[types.NamespacedName]statuses
}

func newModuleInputs(o mapping.Options, registry judgements) *moduleInputs {
	return &moduleInputs{mapping: o, registry: registry, wake: func(vnf) {}, byScope: map[types.NamespacedName]statuses{}}
}

// onChange makes the inputs call wake for every VNF whose modules have changed. wake must not block.
func (i *moduleInputs) onChange(wake func(vnf)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.wake = wake
}

// scopeUpdated notes a scope that exists. One that has not been judged yet may make the modules that it names worse.
func (i *moduleInputs) scopeUpdated(name types.NamespacedName, spec *corev1alpha2.HealthScopeSpec) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.registry.Get(name) != nil {
		return
	}
	reported := statuses{}
	for _, app := range spec.Apps {
		if app.Inventory != nil {
			i.addApp(reported, name, *app.Inventory, "")
		}
	}
	i.setScope(name, reported)
}

// scopeJudged takes in the judgement of a scope; a scope that does not exist any more has none.
func (i *moduleInputs) scopeJudged(name types.NamespacedName) {
	i.mu.Lock()
	defer i.mu.Unlock()
	reported := statuses{}
	if judged := i.registry.Get(name); judged != nil {
		for _, app := range judged.LinkedApps {
			i.addApp(reported, name, app.Links, mapping.OperationalStatus(app.Summary))
		}
	}
	i.setScope(name, reported)
}

// addApp adds the status that an app of a scope reports for its module, if the scope may link to the module.
func (i *moduleInputs) addApp(reported statuses, scope types.NamespacedName, links corev1alpha2.InventoryLinks, status aai.OperationalStatus) {
	if m, ok := mapping.Module(scope.Namespace, links.GenericVNFID, links.VFModuleID, i.mapping); ok {
		reported.add(m, status)
	}
}

// setScope replaces the statuses that a scope reports, and wakes the VNFs whose statuses have changed.
func (i *moduleInputs) setScope(name types.NamespacedName, reported statuses) {
	before := i.byScope[name]
	if i.byScope[name] = reported; len(reported) == 0 {
		delete(i.byScope, name)
	}
	changed := map[vnf]bool{}
	for _, each := range []statuses{before, reported} {
		for m := range each {
			was, had := before[m]
			status, has := reported[m]
			if had != has || was != status {
				changed[vnf(m.GenericVNFID)] = true
			}
		}
	}
	for v := range changed {
		i.wake(v)
	}
}

// desired returns what the modules of a VNF are to be, and the scopes that name them.
func (i *moduleInputs) desired(v vnf) (desired statuses, scopes []types.NamespacedName) {
	i.mu.Lock()
	defer i.mu.Unlock()
	desired = statuses{}
	for name, reported := range i.byScope {
		named := false
		for m, status := range reported {
			if vnf(m.GenericVNFID) == v {
				named = true
				desired.add(m, status)
			}
		}
		if named {
			scopes = append(scopes, name)
		}
	}
	maps.DeleteFunc(desired, func(_ aai.VFModule, status aai.OperationalStatus) bool { return status == "" })
	slices.SortFunc(scopes, compareNames)
	return desired, scopes
}

// vnfs returns, sorted, the VNFs of which a scope names modules; with an empty name those of all scopes.
func (i *moduleInputs) vnfs(name types.NamespacedName) []vnf {
	i.mu.Lock()
	defer i.mu.Unlock()
	found := map[vnf]bool{}
	for by, reported := range i.byScope {
		for m := range reported {
			if name == (types.NamespacedName{}) || name == by {
				found[vnf(m.GenericVNFID)] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// modulesTimeout bounds one pass over the modules of a VNF.
const modulesTimeout = 2 * time.Minute

// moduleSyncer is the part of sync.Syncer that the reconciler of modules uses.
type moduleSyncer interface {
	SyncModules(ctx context.Context, vnfID string, desired map[aai.VFModule]aai.OperationalStatus) (sync.ModuleReport, error)
}

// moduleReconciler keeps the operational-status of the modules of VNFs in sync with the judgements.
type moduleReconciler struct {
	inputs   *moduleInputs
	clusters clusters
	syncer   moduleSyncer
	status   *Status
	backoffs *passBackoffs[vnf]
}

// Reconcile writes what has changed of the modules of a VNF, and reports how far that went.
func (r *moduleReconciler) Reconcile(ctx context.Context, v vnf) (ctrl.Result, error) {
	backoff := r.backoffs.of(v)
	if early := time.Until(backoff.notBefore); early > 0 {
		return ctrl.Result{RequeueAfter: early}, nil
	}
	if err := r.clusters.WaitSynced(ctx); err != nil {
		return ctrl.Result{}, nil //nolint:nilerr // The program is stopping.
	}
	desired, scopes := r.inputs.desired(v)
	report, err := r.sync(ctx, v, desired)
	if ctx.Err() != nil {
		return ctrl.Result{}, nil //nolint:nilerr // The program is stopping, which says nothing about A&AI.
	}
	r.status.recordModulesPass(v, scopes, report, err, time.Now())
	logger := log.FromContext(ctx).WithValues("genericVnf", string(v))
	if report.Written > 0 {
		logger.Info("Modules written", "written", report.Written)
	}
	if err != nil {
		tracing.MarkFailed(ctx)
		retry := backoff.failed(err, time.Now())
		logFailed(logger, err, "Modules not up to date", retry)
		return ctrl.Result{RequeueAfter: retry}, nil
	}
	backoff.succeeded(time.Now())
	if len(report.Modules) == 0 {
		r.backoffs.forget(v)
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
