{{/* The names of objects are this, and a hyphen, and what they are. */}}
{{- define "healthscope.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{/* Labels that select the pods of a component: (list $ "controller"). */}}
{{- define "healthscope.selector" -}}
{{- $ := index . 0 -}}
app.kubernetes.io/name: {{ $.Chart.Name }}
app.kubernetes.io/instance: {{ $.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{/* Labels of an object of a component: (list $ "controller"), or of none: (list $ ""). */}}
{{- define "healthscope.labels" -}}
{{- $ := index . 0 -}}
app.kubernetes.io/name: {{ $.Chart.Name }}
app.kubernetes.io/instance: {{ $.Release.Name }}
{{- with index . 1 }}
app.kubernetes.io/component: {{ . }}
{{- end }}
app.kubernetes.io/version: {{ $.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $.Chart.Name $.Chart.Version | replace "+" "_" }}
{{- with $.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The name of a component's ServiceAccount: (list $ "controller"). */}}
{{- define "healthscope.serviceAccountName" -}}
{{- $ := index . 0 }}
{{- $account := (get $.Values (index . 1)).serviceAccount }}
{{- if and (not $account.create) (not $account.name) }}
{{- fail (printf "%s.serviceAccount.name is needed when %s.serviceAccount.create is false" (index . 1) (index . 1)) }}
{{- end }}
{{- default (printf "%s-%s" (include "healthscope.fullname" $) (index . 1)) $account.name }}
{{- end }}

{{- define "healthscope.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ default $.Chart.AppVersion .tag }}{{ end }}
{{- end }}
{{- end }}

{{/* The namespace of the members' Secrets. The controller may read all Secrets there, so it is never its own namespace. */}}
{{- define "healthscope.clustersNamespace" -}}
{{- $namespace := dig "fleet" "namespace" "healthscope-clusters" .Values.config }}
{{- if eq $namespace .Release.Namespace }}
{{- fail (printf "config.fleet.namespace is %q, the release's own namespace; it must be another one, because the controller may read all Secrets there" $namespace) }}
{{- end }}
{{- $namespace }}
{{- end }}

{{/* The namespace where the controller looks for the monitor's Lease, in every cluster, its own too. */}}
{{- define "healthscope.monitorNamespace" -}}
{{- $namespace := dig "fleet" "monitorNamespace" .Release.Namespace .Values.config }}
{{- if and .Values.controller.enabled .Values.monitor.enabled (ne $namespace .Release.Namespace) }}
{{- fail (printf "config.fleet.monitorNamespace is %q, and the monitor of this release has its Lease in %q, where the controller would not look; set monitor.enabled to false, or install the release in namespace %q" $namespace .Release.Namespace $namespace) }}
{{- end }}
{{- $namespace }}
{{- end }}

{{/* The Secret with a certificate: (list $ "api"). Empty without one. */}}
{{- define "healthscope.certificateSecret" -}}
{{- $ := index . 0 }}
{{- $tls := (get $.Values (index . 1)).tls }}
{{- if and $tls.secretName $tls.certManager.enabled }}
{{- fail (printf "%s.tls.secretName and %s.tls.certManager.enabled are both set; the certificate comes from one of them" (index . 1) (index . 1)) }}
{{- end }}
{{- if $tls.certManager.enabled }}
{{- printf "%s-%s-tls" (include "healthscope.fullname" $) (index . 1) }}
{{- else }}
{{- $tls.secretName }}
{{- end }}
{{- end }}

{{/* The Secrets that a component mounts, by the name of the volume and of its folder in /etc/healthscope: (list $ "controller"). */}}
{{- define "healthscope.secrets" -}}
{{- $ := index . 0 }}
{{- with include "healthscope.certificateSecret" (list $ "metrics") }}
{{- if $.Values.metrics.enabled }}
metrics-tls: {{ . }}
{{- end }}
{{- end }}
{{- if eq (index . 1) "controller" }}
{{- with include "healthscope.certificateSecret" (list $ "api") }}
{{- if $.Values.api.enabled }}
api-tls: {{ . }}
{{- end }}
{{- end }}
{{- with include "healthscope.certificateSecret" (list $ "rsync") }}
rsync-tls: {{ . }}
{{- end }}
{{- with $.Values.rsync.clientCASecret }}
rsync-ca: {{ . }}
{{- end }}
{{- range $section := list "inventory" "appContext" }}
{{- range $what := list "credentials" "ca" "tls" }}
{{- with get (get $.Values $section) (printf "%sSecret" $what) }}
{{ lower $section }}-{{ $what }}: {{ . }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
