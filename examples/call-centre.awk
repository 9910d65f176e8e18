# A call centre: calls arrive at random and wait for a free agent. Prints the average time that callers spend,
# waiting and talking, in minutes; one number for each simulated stretch of 1,000 calls (or -v calls=...).
#
#     awk -f examples/call-centre.awk -v agents=3 -v talk=2.0 -v count=5 -v seed=1
#
# Arrivals are Poisson, one call per minute; talks are exponential with the mean `talk` (M/M/c). Every stretch
# begins with a call that finds the steady state, so its average is free of a start-up bias, and the truth is
# known (Erlang's formula C).

function exponential(mean) { return -mean * log(1 - rand()) }

function in_system(   load, weight, total, k, u) {   # how many callers are there when a stretch begins
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

function served(now,   agent, start) {   # the time at which a caller of that moment has been served
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
