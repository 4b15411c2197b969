{{/* The rules of a role in files/rbac, which are those of config/rbac: (list $ file kind), and for a Role its namespace there. */}}
{{- define "healthscope.rules" -}}
{{- $ := index . 0 }}
{{- $kind := index . 2 }}
{{- $namespace := "" }}
{{- if gt (len .) 3 }}
{{- $namespace = index . 3 }}
{{- end }}
{{- range splitList "---\n" ($.Files.Get (printf "files/rbac/%s" (index . 1))) }}
{{- $role := fromYaml . }}
{{- if and (eq (dig "kind" "" $role) $kind) (eq (dig "metadata" "namespace" "" $role) $namespace) }}
{{- toYaml $role.rules }}
{{- end }}
{{- end }}
{{- end }}

{{/* Whom the roles of a component are for: (list $ "controller"). */}}
{{- define "healthscope.subjects" -}}
subjects:
- kind: ServiceAccount
  name: {{ include "healthscope.serviceAccountName" . }}
  namespace: {{ (index . 0).Release.Namespace }}
{{- end }}

{{/* The groups of Kubernetes itself. To notice when a kind of another group comes and goes takes more rights. */}}
{{- define "healthscope.kubernetesGroups" -}}
["", admissionregistration.k8s.io, apps, authentication.k8s.io, authorization.k8s.io, autoscaling, batch, certificates.k8s.io,
 coordination.k8s.io, discovery.k8s.io, events.k8s.io, extensions, flowcontrol.apiserver.k8s.io, internal.apiserver.k8s.io, lifecycle.k8s.io,
 networking.k8s.io, node.k8s.io, policy, rbac.authorization.k8s.io, resource.k8s.io, scheduling.k8s.io, storage.k8s.io,
 storagemigration.k8s.io]
{{- end }}

{{/* The options of the monitor that take a role of their own, as config/docs/rights.md says: a list of files/rbac/monitor_<option>.yaml. */}}
{{- define "healthscope.monitorOptions" -}}
{{- $monitor := default dict .Values.config.monitor }}
{{- $own := include "healthscope.kubernetesGroups" . | fromYamlArray }}
{{- $discovery := $monitor.discover }}
{{- $secrets := false }}
{{- range $monitor.kinds }}
{{- $group := contains "/" .apiVersion | ternary (splitList "/" .apiVersion | first) "" }}
{{- if not (has $group $own) }}
{{- $discovery = true }}
{{- end }}
{{- if and (eq $group "") (eq .kind "Secret") }}
{{- $secrets = true }}
{{- end }}
{{- end }}
{{- if hasKey $monitor "createBundles" }}
- createbundles
{{- end }}
{{- if $discovery }}
- discovery
{{- end }}
{{- if $secrets }}
- secrets
{{- end }}
{{- if $monitor.trustedNamespaces }}
- trusted
{{- end }}
{{- end }}
