package v1alpha1

import corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"

// Defaults of fields of the configuration file that other packages use too.
const (
	// DefaultClusterName is the default name of a cluster.
	DefaultClusterName = "local"
	// DefaultSchemaVersion is the newest version of the A&AI schema.
	DefaultSchemaVersion = "v32"
	// DefaultLabelPrefix is the default prefix of the labels in A&AI that hold status, reason, since and link.
	DefaultLabelPrefix = "healthscope.core.oam.dev/"
)

// SetDefaults sets the fields that the file does not set to their defaults.
func SetDefaults(c *Configuration) {
	c.APIVersion, c.Kind = APIVersion, Kind
	setDefault(&c.ClusterName, DefaultClusterName)
	setDefaultPointer(&c.Policy.PendingTimeoutSeconds, 600)
	setDefaultPointer(&c.Policy.NotPresentGraceSeconds, 60)
	setDefaultPointer(&c.Policy.NoStatusGraceSeconds, 60)
	setDefaultPointer(&c.Policy.FailureGraceSeconds, 0)
	setDefaultPointer(&c.Policy.RecoveryHoldSeconds, 0)
	if len(c.Monitor.LabelKeys) == 0 {
		c.Monitor.LabelKeys = []string{"emco/deployment-id"}
	}
	if c.Monitor.AllowedLabels == nil {
		c.Monitor.AllowedLabels = []string{corev1alpha2.LabelComponent, "app.kubernetes.io/name", "app.kubernetes.io/component"}
	}
	setDefaultPointer(&c.Monitor.ListBudgetKiB, 256)
	setDefaultPointer(&c.Monitor.LimitKiB, 1024)
	if b := c.Monitor.CreateBundles; b != nil {
		if b.Preset == PresetKubeVela {
			setDefault(&b.LabelKey, corev1alpha2.LabelApplication)
		}
		setDefault(&b.LabelKey, "healthscope.core.oam.dev/name")
	}
	setDefault(&c.Fleet.Namespace, "healthscope-clusters")
	setDefault(&c.Fleet.MonitorNamespace, "healthscope-system")
	setDefaultPointer(&c.Fleet.QueriesPerSecond, 20)
	setDefaultPointer(&c.Fleet.Burst, 30)
	setDefaultPointer(&c.Fleet.TimeoutSeconds, 10)
	setDefaultPointer(&c.Fleet.Budget.Bundles, 10_000)
	setDefaultPointer(&c.Fleet.Budget.Resources, 100_000)
	setDefaultPointer(&c.Fleet.Budget.MemoryMiB, 100)
	setDefaultPointer(&c.Fleet.Budget.ChangesPerSecond, 100)
	setDefaultPointer(&c.Fleet.Budget.TotalMemoryMiB, 400)
	setDefault(&c.API.BindAddress, "127.0.0.1:8082")
	setDefault(&c.API.DefaultNamespace, "default")
	setDefault(&c.Metrics.BindAddress, "127.0.0.1:8080")
	if c.Tracing != nil {
		setDefaultPointer(&c.Tracing.SamplingPercent, 100)
	}
	if c.AppContext != nil {
		setDefaultPointer(&c.AppContext.TimeoutSeconds, 5)
	}
	setDefault(&c.Rsync.DeletionOrder, DeletionReverse)
	if c.Rsync.GRPC != nil {
		setDefault(&c.Rsync.GRPC.BindAddress, "127.0.0.1:9031")
	}
	if c.Inventory != nil {
		setInventoryDefaults(c.Inventory)
	}
}

func setInventoryDefaults(i *Inventory) {
	setDefault(&i.SchemaVersion, DefaultSchemaVersion)
	setDefault(&i.Installation, "default")
	setDefaultPointer(&i.TimeoutSeconds, 30)
	setDefaultPointer(&i.ResyncSeconds, 600)
	setDefaultPointer(&i.MaxRequestsPerSecond, 50)
	setDefault(&i.Policy, PolicySync)
	setDefaultPointer(&i.MaxDeletionPercent, 20)
	setDefault(&i.LabelPrefix, DefaultLabelPrefix)
	setDefault(&i.SelflinkBase, "http://healthscope")
	setDefault(&i.Select, SelectScoped)
	if len(i.Kinds) == 0 {
		i.Kinds = []string{
			"Deployment.apps", "StatefulSet.apps", "DaemonSet.apps", "ReplicaSet.apps", "Job.batch", "CronJob.batch",
			"Pod", "Service", "PersistentVolumeClaim",
		}
	}
	for n := range i.Regions {
		setDefault(&i.Regions[n].Namespace, "*")
	}
}

func setDefault[S ~string](field *S, value S) {
	if *field == "" {
		*field = value
	}
}

func setDefaultPointer(field **int32, value int32) {
	if *field == nil {
		*field = &value
	}
}
