package rules

import (
	"slices"

	"github.com/healthscope/healthscope/healthscope"
)

// groupKind identifies a kind in its API group. Rules do not depend on the version, because the fields that they read mean the same in all versions.
type groupKind struct{ group, kind string }

// rule judges an object of one kind. It fills in the result, and records in the object what it cannot read.
type rule func(o *object)

// rulesByKind maps kinds to their rules. Workloads before Kubernetes 1.16 and Ingresses before 1.22 have the group extensions, in which old
// monitors still report them.
var rulesByKind = map[groupKind]rule{
	{"", "Pod"}:                   judgePod,
	{"apps", "Deployment"}:        judgeDeployment,
	{"extensions", "Deployment"}:  judgeDeployment,
	{"apps", "ReplicaSet"}:        judgeReplicaSet,
	{"extensions", "ReplicaSet"}:  judgeReplicaSet,
	{"", "ReplicationController"}: judgeReplicaSet,
	{"apps", "StatefulSet"}:       judgeStatefulSet,
	{"apps", "DaemonSet"}:         judgeDaemonSet,
	{"extensions", "DaemonSet"}:   judgeDaemonSet,
	{"batch", "Job"}:              judgeJob,
	{"batch", "CronJob"}:          judgeCronJob,

	{"", "Service"}:                               judgeService,
	{"networking.k8s.io", "Ingress"}:              judgeIngress,
	{"extensions", "Ingress"}:                     judgeIngress,
	{"gateway.networking.k8s.io", "Gateway"}:      judgeGateway,
	{"gateway.networking.k8s.io", "GatewayClass"}: judgeGatewayClass,
	{"gateway.networking.k8s.io", "HTTPRoute"}:    judgeRoute,
	{"gateway.networking.k8s.io", "GRPCRoute"}:    judgeRoute,
	{"gateway.networking.k8s.io", "TLSRoute"}:     judgeRoute,
	{"gateway.networking.k8s.io", "TCPRoute"}:     judgeRoute,
	{"gateway.networking.k8s.io", "UDPRoute"}:     judgeRoute,

	{"", "PersistentVolumeClaim"}:                        judgeClaim,
	{"", "PersistentVolume"}:                             judgeVolume,
	{"snapshot.storage.k8s.io", "VolumeSnapshot"}:        judgeSnapshot,
	{"snapshot.storage.k8s.io", "VolumeSnapshotContent"}: judgeSnapshot,

	{"autoscaling", "HorizontalPodAutoscaler"}:           judgeAutoscaler,
	{"policy", "PodDisruptionBudget"}:                    judgeBudget,
	{"apiregistration.k8s.io", "APIService"}:             judgeAPIService,
	{"apiextensions.k8s.io", "CustomResourceDefinition"}: judgeDefinition,
	{"", "Namespace"}:                                    judgeNamespace,

	{"", "ConfigMap"}:                                   judgeExistence,
	{"", "Secret"}:                                      judgeExistence,
	{"", "ServiceAccount"}:                              judgeExistence,
	{"rbac.authorization.k8s.io", "Role"}:               judgeExistence,
	{"rbac.authorization.k8s.io", "RoleBinding"}:        judgeExistence,
	{"rbac.authorization.k8s.io", "ClusterRole"}:        judgeExistence,
	{"rbac.authorization.k8s.io", "ClusterRoleBinding"}: judgeExistence,
	{"networking.k8s.io", "NetworkPolicy"}:              judgeExistence,
	{"k8s.cni.cncf.io", "NetworkAttachmentDefinition"}:  judgeExistence,
	{"k8s.plugin.opnfv.org", "Network"}:                 judgeNetwork,
	{"k8s.plugin.opnfv.org", "ProviderNetwork"}:         judgeNetwork,
	{"k8s.plugin.opnfv.org", "NetworkChaining"}:         judgeNetwork,
	{"argoproj.io", "Application"}:                      judgeApplication,
	{"core.oam.dev", "Application"}:                     judgeVela,
	{"core.oam.dev", "ContainerizedWorkload"}:           judgeOAMWorkload,
	{"standard.oam.dev", "PodSpecWorkload"}:             judgeOAMWorkload,
	{"kubevirt.io", "VirtualMachine"}:                   judgeVirtualMachine,

	{"acme.cert-manager.io", "Order"}:         judgeACME,
	{"acme.cert-manager.io", "Challenge"}:     judgeACME,
	{"postgresql.cnpg.io", "Database"}:        judgeApplied,
	{"postgresql.cnpg.io", "ScheduledBackup"}: judgeExistence,
	{"core.strimzi.io", "StrimziPodSet"}:      judgePodSet,
}

// builtInGroups are the API groups that Kubernetes itself serves. An object of a kind in these groups that has no rule is healthy when it exists.
var builtInGroups = []string{
	"", "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "apps", "autoscaling", "batch",
	"certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io", "extensions", "flowcontrol.apiserver.k8s.io",
	"internal.apiserver.k8s.io", "networking.k8s.io", "node.k8s.io", "policy", "rbac.authorization.k8s.io", "resource.k8s.io",
	"scheduling.k8s.io", "storage.k8s.io", "storagemigration.k8s.io",
}

// builtIn reports whether Kubernetes itself serves an API group.
func builtIn(group string) bool { return slices.Contains(builtInGroups, group) }

// judgeExistence is the rule for kinds that have no health of their own.
func judgeExistence(o *object) {
	o.State, o.Reason = healthscope.Ready, healthscope.ReasonExists
}
