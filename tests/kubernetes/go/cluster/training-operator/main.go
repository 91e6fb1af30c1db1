// The training operator's own reconcilers without its webhook: outside a cluster the stock binary waits for a
// certificate that only its Deployment provides. --enable-scheme chooses the kinds, as there.
package main

import (
	"flag"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/flowcontrol"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"github.com/kubeflow/training-operator/pkg/config"
	controllerv1 "github.com/kubeflow/training-operator/pkg/controller.v1"
	"github.com/kubeflow/training-operator/pkg/controller.v1/common"
)

func run() error {
	var kinds controllerv1.EnabledSchemes
	flag.Var(&kinds, "enable-scheme", "kind to reconcile, such as pytorchjob or mpijob; may be repeated")
	threads := flag.Int("controller-threads", 8, "threads of each controller")
	qps := flag.Int("kube-api-qps", 500, "requests per second to the API server")
	burst := flag.Int("kube-api-burst", 1000, "requests at once to the API server")
	initImage := flag.String("pytorch-init-container-image", config.PyTorchInitContainerImageDefault,
		"image in which a worker waits for its master")
	deliveryImage := flag.String("mpi-kubectl-delivery-image", config.MPIKubectlDeliveryImageDefault,
		"image that brings kubectl to the launcher of an MPIJob")
	flag.Parse()
	if kinds.Empty() {
		return fmt.Errorf("no kind to reconcile; give --enable-scheme=pytorchjob")
	}
	config.Config.PyTorchInitContainerImage = *initImage
	config.Config.PyTorchInitContainerTemplateFile = config.PyTorchInitContainerTemplateFileDefault
	config.Config.PyTorchInitContainerMaxTries = config.PyTorchInitContainerMaxTriesDefault
	config.Config.MPIKubectlDeliveryImage = *deliveryImage

	ctrl.SetLogger(zap.New())
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(kubeflowv1.AddToScheme(scheme))
	cluster, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	cluster.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(float32(*qps), *burst)
	manager, err := ctrl.NewManager(cluster, ctrl.Options{
		Scheme:                 scheme,
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
	})
	if err != nil {
		return err
	}
	for _, kind := range kinds {
		setup := controllerv1.SupportedSchemeReconciler[kind]
		if err := setup(manager, common.GenNonGangSchedulerSetupFunc(), *threads); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	return manager.Start(ctrl.SetupSignalHandler())
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "training-operator:", err)
		os.Exit(1)
	}
}
