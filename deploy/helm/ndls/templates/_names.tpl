{{- define "ndls.labels" -}}
app.kubernetes.io/name: ndls
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end }}

{{- /* The labels by which pods are found; a release's name tells it from another one. */}}
{{- define "ndls.selector" -}}
app.kubernetes.io/name: ndls
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "ndls.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "ndls.claim" -}}
{{ .Values.volume.claim | default (printf "%s-data" .Release.Name) }}
{{- end }}

{{- /* Where and how pods are placed, and who may fetch their image. */}}
{{- define "ndls.placement" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
