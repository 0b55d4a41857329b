"""A DAG of Airflow around the batch job: plan, run, export.

Put this file into the folder of DAGs, and start the DAG with the parameters of a job. `ndls` is on the
PATH of the workers, which see the run directory under the same name.
"""

from datetime import timedelta

from airflow.providers.standard.hooks.subprocess import SubprocessHook
from airflow.sdk import DAG, BaseOperator, Param
from airflow.sdk.exceptions import AirflowException, AirflowFailException

# An interrupted job goes on when the same command runs again. A negative status is the signal that killed it.
INTERRUPTED = (75, 130)


class Ndls(BaseOperator):
    """Runs a command of ndls: again where it was interrupted, and not where another try would end in the same way."""

    template_fields = ("arguments",)

    def __init__(self, *, arguments: list[str], **kwargs) -> None:
        super().__init__(**kwargs)
        self.arguments = arguments
        self.hook = SubprocessHook()

    def execute(self, context) -> None:
        status = self.hook.run_command(["ndls", *self.arguments]).exit_code
        if status in INTERRUPTED or status < 0:
            raise AirflowException(f"ndls was interrupted (status {status})")
        if status != 0:
            raise AirflowFailException(f"ndls {self.arguments[0]} ended with status {status}")

    def on_kill(self) -> None:
        """Lets ndls stop at a state from which the next try continues."""
        self.hook.send_sigterm()


JOB = ["--dataset={{ params.dataset }}", "--memory={{ params.memory }}", "--runs={{ params.models }}"]

with DAG(
    "ndls_job",
    schedule=None,
    catchup=False,
    max_active_runs=1,  # a run directory has one job at a time
    params={
        "dataset": Param("synthetic:nodes=20000,edges=100000,features=32,classes=5,seed=1", type="string"),
        "run": Param("/data/run", type="string", description="run directory"),
        "memory": Param("1GiB", type="string"),
        "models": Param(3, type="integer"),
        "out": Param("/data/predictions.parquet", type="string"),
    },
    default_args={"retries": 20, "retry_delay": timedelta(seconds=10)},
) as dag:
    # Status 3 where the job does not fit the memory or the disk: before anything is computed.
    plan = Ndls(task_id="plan", arguments=["plan", *JOB])
    run = Ndls(task_id="run", arguments=["run", "--run={{ params.run }}", *JOB])
    export = Ndls(
        task_id="export",
        arguments=["export", "--run={{ params.run }}", "--what=predictions", "--format=parquet", "--out={{ params.out }}", "--force"],
    )
    plan >> run >> export
