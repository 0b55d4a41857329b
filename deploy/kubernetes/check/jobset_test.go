package check

import (
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// jobSet has those fields of a JobSet that the manifests use, with the names of
// https://github.com/kubernetes-sigs/jobset, api/jobset/v1alpha2/jobset_types.go at
// 816ba51e81df. Decoded strictly, it refuses the fields that exist and are not here.
type jobSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              jobSetSpec `json:"spec"`
}

type jobSetSpec struct {
	ReplicatedJobs []replicatedJob `json:"replicatedJobs"`
	Network        struct {
		EnableDNSHostnames       *bool  `json:"enableDNSHostnames"`
		Subdomain                string `json:"subdomain"`
		PublishNotReadyAddresses *bool  `json:"publishNotReadyAddresses"`
	} `json:"network"`
	SuccessPolicy struct {
		Operator             string   `json:"operator"`
		TargetReplicatedJobs []string `json:"targetReplicatedJobs"`
	} `json:"successPolicy"`
	FailurePolicy struct {
		MaxRestarts int32 `json:"maxRestarts"`
		Rules       []struct {
			Name                string   `json:"name"`
			Action              string   `json:"action"`
			OnJobFailureReasons []string `json:"onJobFailureReasons"`
		} `json:"rules"`
	} `json:"failurePolicy"`
}

type replicatedJob struct {
	Name     string                  `json:"name"`
	Replicas int32                   `json:"replicas"`
	Template batchv1.JobTemplateSpec `json:"template"`
}
