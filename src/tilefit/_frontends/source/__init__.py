"""Kernels from Python's `ast` alone: nothing is executed.

The way of a file, each module importing only from those below it:

    frontend        a file: its kernels listed, one of them read
    factories       a kernel from the values that were given: its factories called, itself traced
    siblings        the author's other modules, followed where the file imports them
    kernel          from the record of a traced kernel to `Kernel` values
    buffers         the buffers of such a record: memory, copies, bytes, what is missing

    interpreter     all rules together; a module and a kernel followed
    statements      rules for definitions, imports, assignments, `with`
    control         rules for branches, loops and `try`
    expressions     rules for expressions
    calls           calling a value
    language_calls  calling a function of TileLang's language: declares, reads, writes
    attributes      `owner.name` and `owner[index]`
    classes         classes of the file and their objects
    names           looking a name up, binding a target
    functions       functions of the file: arguments, running one
    machine         the state, its budget of steps and its doubts; evaluation by kind of node

    options         options of a command line (argparse), each at its default
    modules         dotted names of other modules, facts about the device
    find            which functions are kernels, their parameters
    ascend          what a record says of an Ascend chip: sums, cores, conditions
    trace           the record: launches, tiles, loops and what they touch
    implied         buffers that operations allocate by themselves
    allocate        allocation functions
    builtins        functions of the standard library
    language        TileLang's language module: loops, tensors, arithmetic
    operators       operators on plain values
    unknown         values of which some are not known; what is missing
    values          what a value can be
"""
