# A call centre: calls arrive at random and wait for a free agent. Prints the average time in minutes that callers
# spend waiting and talking, one number for each simulated sequence of 1,000 calls (or -v calls=...).
#
#     awk -f examples/call-centre.awk -v agents=3 -v talk=2.0 -v count=5 -v seed=1
#
# Arrivals are Poisson, one call per minute; talking times are exponential with mean `talk` (M/M/c). Every
# sequence begins in the steady state, so its average has no start-up bias, and the true mean is known (Erlang's
# formula C).

function exponential(mean) { return -mean * log(1 - rand()) }

function in_system(   load, weight, total, k, u) {   # the number of callers when a sequence begins
    load = talk
    u = rand()
    total = weight = 1
    for (k = 1; k < agents; k++) { weight *= load / k; total += weight }
    total += weight * load / agents / (1 - load / agents)
    weight = 1 / total
    for (k = 0; u > weight && k < 10000; k++) {
        u -= weight
        weight *= load / (k + 1 < agents ? k + 1 : agents)
    }
    return k
}

function first_free(   agent, best) {
    best = 1
    for (agent = 2; agent <= agents; agent++) if (free[agent] < free[best]) best = agent
    return best
}

function served(now,   agent, start) {   # the time at which a caller who arrives now has been served
    agent = first_free()
    start = free[agent] > now ? free[agent] : now
    return free[agent] = start + exponential(talk)
}

BEGIN {
    srand(seed % 2147483647)
    if (!calls) calls = 1000
    for (stretch = 0; stretch < count; stretch++) {
        for (agent = 1; agent <= agents; agent++) free[agent] = 0
        for (there = in_system(); there > 0; there--) served(0)
        now = spent = 0
        for (call = 0; call < calls; call++) {
            spent += served(now) - now
            now += exponential(1)
        }
        print spent / calls
    }
}
