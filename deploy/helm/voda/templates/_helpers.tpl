{{- define "voda.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Objects without a namespace carry that of the release in their names: several releases may be there. */}}
{{- define "voda.clusterName" -}}
{{- printf "%s-%s" (include "voda.fullname" .) .Release.Namespace -}}
{{- end -}}

{{- define "voda.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "voda.labels" -}}
{{ include "voda.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "voda.account" -}}
{{- if .Values.serviceAccount.name -}}
{{- .Values.serviceAccount.name -}}
{{- else if .Values.serviceAccount.create -}}
{{- include "voda.fullname" . -}}
{{- else -}}
{{- fail "serviceAccount.create is false: name the account in serviceAccount.name" -}}
{{- end -}}
{{- end -}}

{{- define "voda.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{- define "voda.tlsSecret" -}}
{{- .Values.tls.secretName | default (printf "%s-tls" (include "voda.fullname" .)) -}}
{{- end -}}

{{- define "voda.claim" -}}
{{- .Values.data.persistent.existingClaim | default (printf "%s-data" (include "voda.fullname" .)) -}}
{{- end -}}

{{/* Zones, where nodes have them. Not a spread constraint: those ignore nodes that lack one of the labels. */}}
{{- define "voda.affinity" -}}
podAntiAffinity:
  preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 50
      podAffinityTerm:
        topologyKey: topology.kubernetes.io/zone
        labelSelector:
          matchLabels:
            {{- include "voda.selector" . | nindent 12 }}
{{- end -}}

{{/* The names of the Service, as a JSON object with a list. */}}
{{- define "voda.names" -}}
{{- $name := include "voda.fullname" . -}}
{{- $namespaced := printf "%s.%s" $name .Release.Namespace -}}
{{- dict "names" (list $name $namespaced (printf "%s.svc" $namespaced)
      (printf "%s.svc.%s" $namespaced .Values.clusterDomain)) | toJson -}}
{{- end -}}

{{/* A number as it was written: Helm reads numbers as floating point and would print 3000000 as 3e+06. */}}
{{- define "voda.number" -}}
{{- if and (kindIs "float64" .) (eq . (floor .)) -}}
{{- int64 . -}}
{{- else -}}
{{- . -}}
{{- end -}}
{{- end -}}

{{- define "voda.subjects" -}}
- kind: ServiceAccount
  name: {{ include "voda.account" . }}
  namespace: {{ .Release.Namespace }}
{{- end -}}

{{/* What Voda does with jobs, in every namespace or in those named. */}}
{{- define "voda.jobRules" -}}
- apiGroups: [kubeflow.org]
  resources: [mpijobs, pytorchjobs]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [kubeflow.org]
  resources: [mpijobs/status, pytorchjobs/status]   # a condition of its own among those of the operators
  verbs: [patch]
- apiGroups: [kubeflow.org]
  resources: [pytorchjobs/scale]
  verbs: [update]
- apiGroups: [""]
  resources: [pods]                                 # the operators create them; Voda places, annotates and moves them
  verbs: [list, watch, patch, delete]
- apiGroups: [""]
  resources: [pods/log]                             # voda logs
  verbs: [get]
- apiGroups: [""]
  resources: [configmaps]                           # the host list of an MPIJob
  verbs: [get]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- end -}}

{{/* What belongs to no namespace. */}}
{{- define "voda.clusterRules" -}}
- apiGroups: [""]
  resources: [nodes]
  verbs: [list, watch{{ if eq (toString .Values.steering) "taints" }}, patch{{ end }}]
- apiGroups: [authentication.k8s.io]
  resources: [tokenreviews]                         # who asks
  verbs: [create]
- apiGroups: [authorization.k8s.io]
  resources: [subjectaccessreviews]                 # whether they may
  verbs: [create]
{{- end -}}
