// The mpi-operator's own controller, with its own flags, without leader election and health port. The stock binary
// listens on port 8080 of every interface, so there could be only one per machine, and after a crash the next one waits
// up to 15 s for the lease.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/kubeflow/mpi-operator/cmd/mpi-operator/app/options"
	mpiclient "github.com/kubeflow/mpi-operator/pkg/client/clientset/versioned"
	mpischeme "github.com/kubeflow/mpi-operator/pkg/client/clientset/versioned/scheme"
	mpiinformers "github.com/kubeflow/mpi-operator/pkg/client/informers/externalversions"
	"github.com/kubeflow/mpi-operator/pkg/controller"
)

func run(option *options.ServerOption) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags(option.MasterURL, option.Kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = float32(option.QPS), option.Burst
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	mpi, err := mpiclient.NewForConfig(config)
	if err != nil {
		return err
	}
	if _, err := mpi.KubeflowV2beta1().MPIJobs(option.Namespace).List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
		return fmt.Errorf("MPIJobs cannot be listed: %w", err)
	}
	if err := mpischeme.AddToScheme(scheme.Scheme); err != nil {
		return err
	}
	coreFactory := informers.NewSharedInformerFactoryWithOptions(core, 0, informers.WithNamespace(option.Namespace))
	mpiFactory := mpiinformers.NewSharedInformerFactoryWithOptions(mpi, 0, mpiinformers.WithNamespace(option.Namespace))
	jobs, err := controller.NewMPIJobController(ctx, core, mpi, nil, nil,
		coreFactory.Core().V1().ConfigMaps(), coreFactory.Core().V1().Secrets(), coreFactory.Core().V1().Services(),
		coreFactory.Batch().V1().Jobs(), coreFactory.Core().V1().Pods(), coreFactory.Scheduling().V1().PriorityClasses(),
		mpiFactory.Kubeflow().V2beta1().MPIJobs(), option)
	if err != nil {
		return err
	}
	coreFactory.Start(ctx.Done())
	mpiFactory.Start(ctx.Done())
	return jobs.Run(option.Threadiness, ctx.Done())
}

func main() {
	klog.InitFlags(nil)
	option := options.NewServerOption()
	option.AddFlags(flag.CommandLine)
	flag.Parse()
	if err := run(option); err != nil {
		fmt.Fprintln(os.Stderr, "mpi-operator:", err)
		os.Exit(1)
	}
}
