{{/* The ports that a component connects to, DNS aside: (list $ "controller"). */}}
{{- define "healthscope.egressPorts" -}}
{{- $ := index . 0 }}
{{- $config := $.Values.config }}
{{- range $.Values.networkPolicy.apiServerPorts }}
- {{ int . }}
{{- end }}
{{- $urls := list }}
{{- with dig "tracing" "endpoint" "" $config }}
{{- $urls = append $urls . }}
{{- end }}
{{- if eq (index . 1) "controller" }}
{{- with dig "inventory" "url" "" $config }}
{{- $urls = append $urls . }}
{{- end }}
{{- $urls = concat $urls (dig "appContext" "endpoints" list $config) }}
{{- end }}
{{- range $urls }}
- {{ include "healthscope.port" . }}
{{- end }}
{{- end }}

{{/* The port of a URL. */}}
{{- define "healthscope.port" -}}
{{- $url := urlParse . }}
{{- $port := regexFind ":[0-9]+$" $url.host | trimPrefix ":" }}
{{- default (eq $url.scheme "https" | ternary "443" "80") $port }}
{{- end }}
