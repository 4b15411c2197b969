{{/* The configuration file of a component: (list $ "controller"). What the values say goes before what the chart fills in. */}}
{{- define "healthscope.configuration" -}}
{{- $ := index . 0 }}
{{- $component := index . 1 }}
{{- $config := deepCopy $.Values.config }}
{{- if eq $component "monitor" }}
{{- $config = omit $config "policy" "fleet" "inventory" "api" "appContext" "recorder" "probes" "oam" "rsync" }}
{{- end }}
{{- $filled := dict "apiVersion" "config.healthscope.io/v1alpha1" "kind" "Configuration" }}
{{- $metrics := dict "bindAddress" (ternary ":8080" "0" $.Values.metrics.enabled) }}
{{- if and $.Values.metrics.enabled (include "healthscope.certificateSecret" (list $ "metrics")) }}
{{- $metrics = merge $metrics (include "healthscope.certificateFiles" "metrics-tls" | fromYaml) }}
{{- end }}
{{- $_ := set $filled "metrics" $metrics }}
{{- if eq $component "controller" }}
{{- $_ := set $filled "fleet" (dict "namespace" (include "healthscope.clustersNamespace" $) "monitorNamespace" (include "healthscope.monitorNamespace" $)) }}
{{- $_ := set $filled "api" (include "healthscope.api" $ | fromYaml) }}
{{- with include "healthscope.rsync" $ | fromYaml }}
{{- if not (($config).rsync).enabled }}
{{- fail "rsync has settings, and config.rsync.enabled is false; there is nothing to serve" }}
{{- end }}
{{- $_ := set $filled "rsync" (dict "grpc" .) }}
{{- end }}
{{- if $.Values.probeNamespaces }}
{{- $_ := set $filled "probes" (dict "enabled" true) }}
{{- end }}
{{- range $section := list "inventory" "appContext" }}
{{- with include "healthscope.files" (list $ $section) | fromYaml }}
{{- if not (hasKey $config $section) }}
{{- fail (printf "%s names a Secret, and config.%s does not say what for" $section $section) }}
{{- end }}
{{- $_ := set $filled $section . }}
{{- end }}
{{- end }}
{{- end }}
{{- toYaml (mergeOverwrite $filled $config) }}
{{- end }}

{{- define "healthscope.certificateFiles" -}}
certFile: /etc/healthscope/{{ . }}/tls.crt
keyFile: /etc/healthscope/{{ . }}/tls.key
{{- end }}

{{/* Where the status REST API listens. */}}
{{- define "healthscope.api" -}}
{{- if not .Values.api.enabled -}}
bindAddress: "0"
{{- else if include "healthscope.certificateSecret" (list . "api") -}}
bindAddress: ":8082"
{{ include "healthscope.certificateFiles" "api-tls" }}
{{- else -}}
bindAddress: 127.0.0.1:8082
{{- end }}
{{- with int .Values.api.port }}
anonymousBindAddress: 127.0.0.1:{{ . }}
{{- end }}
{{- end }}

{{/* Where the gRPC server of rsync listens; nothing without a certificate. */}}
{{- define "healthscope.rsync" -}}
{{- if include "healthscope.certificateSecret" (list . "rsync") }}
bindAddress: ":9031"
{{ include "healthscope.certificateFiles" "rsync-tls" }}
{{- if .Values.rsync.clientCASecret }}
clientCAFile: /etc/healthscope/rsync-ca/ca.crt
{{- end }}
{{- else if .Values.rsync.clientCASecret }}
{{- fail "rsync.clientCASecret is set, and rsync.tls names no certificate; without TLS callers show none" }}
{{- end }}
{{- end }}

{{/* Not empty when the gRPC server of rsync is reached from other pods. */}}
{{- define "healthscope.rsyncExposed" -}}
{{- if .Values.controller.enabled -}}
{{- if or (include "healthscope.certificateSecret" (list . "rsync")) (and ((.Values.config).rsync).enabled (((.Values.config).rsync).grpc).allowPlaintext (has (dig "rsync" "grpc" "bindAddress" "" .Values.config) (list ":9031" "0.0.0.0:9031" "[::]:9031"))) -}}
true
{{- end }}
{{- end }}
{{- end }}

{{/* The files of the Secrets of a section: (list $ "inventory"). */}}
{{- define "healthscope.files" -}}
{{- $section := lower (index . 1) }}
{{- with get (index . 0).Values (index . 1) }}
{{- if .credentialsSecret }}
usernameFile: /etc/healthscope/{{ $section }}-credentials/username
passwordFile: /etc/healthscope/{{ $section }}-credentials/password
{{- end }}
{{- if .caSecret }}
caFile: /etc/healthscope/{{ $section }}-ca/ca.crt
{{- end }}
{{- if .tlsSecret }}
{{ include "healthscope.certificateFiles" (printf "%s-tls" $section) }}
{{- end }}
{{- end }}
{{- end }}
