// A pipeline of Nextflow around the batch job: plan, run, export.
//
//   nextflow run main.nf --dataset URI --run DIR --out FOLDER
nextflow.enable.dsl = 2

params.dataset = 'synthetic:nodes=20000,edges=100000,features=32,classes=5,seed=1'
params.run = "$launchDir/runs/nextflow" // outside of the folders of tasks: the next try continues it
params.out = "$launchDir/out"
params.memory = '2 GB'
params.cpus = 2
params.models = 3

// The program's share of the task's memory, in its own words.
def limit(memory) { "${memory.toMega() * 9 / 10 as long}MiB" }

process plan {
    memory params.memory

    output:
    path 'plan.txt'

    script:
    """
    ndls plan --dataset '${params.dataset}' --memory ${limit(task.memory)} --runs ${params.models} > plan.txt
    """
}

process job {
    memory params.memory
    cpus params.cpus
    maxRetries 20
    // 75: interrupted, and the same command goes on. 130, 137 and 143: killed. Others would end in the same way again.
    errorStrategy { task.exitStatus in [75, 130, 137, 143] ? 'retry' : 'terminate' }

    input:
    path plan

    output:
    val params.run

    script:
    """
    exec ndls run --dataset '${params.dataset}' --run '${params.run}' --memory ${limit(task.memory)} --threads ${task.cpus} --runs ${params.models}
    """
}

process export {
    publishDir params.out, mode: 'copy'

    input:
    val run

    output:
    path 'predictions.parquet'

    script:
    """
    ndls export --run '${run}' --what predictions --format parquet --out predictions.parquet
    """
}

workflow {
    plan | job | export
}
