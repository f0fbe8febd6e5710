/* Loads the tracer's BPF programs, writes their records to a file, and reports their cost at the end.
 *
 *     tracer FILE INODE...        traces the network namespaces with these inodes
 *
 * The program prints one JSON object per line: "ready" and the clocks when all hooks are attached; the clocks again and counts at the end.
 * It ends at SIGINT or SIGTERM, or when its parent ends. It exits with 5 if the kernel or missing permissions do not allow tracing.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>
#include "tracer.h"
#include "tracer.skel.h"

#define CANNOT_TRACE 5
#define POLL_MS 50
#define NS_PER_S 1000000000LL

static volatile sig_atomic_t ended;

static void end(int signal)
{
	(void)signal;
	ended = 1;
}

static int write_record(void *file, void *data, size_t bytes)
{
	return fwrite(data, bytes, 1, file) == 1 ? 0 : -EIO;
}

static long long now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* Return the realtime clock minus the monotonic clock. Of several readings, the one that took the shortest time counts. */
static long long clock_offset_ns(void)
{
	long long best = 0, least = NS_PER_S;

	for (int i = 0; i < 20; i++) {
		long long before = now_ns(CLOCK_MONOTONIC), real = now_ns(CLOCK_REALTIME), after = now_ns(CLOCK_MONOTONIC);

		if (after - before < least) {
			least = after - before;
			best = real - (before + after) / 2;
		}
	}
	return best;
}

static void print_costs(const struct tracer_bpf *tracer)
{
	struct bpf_program *program;
	const char *separator = "";

	printf("\"programs\": {");
	bpf_object__for_each_program(program, tracer->obj) {
		struct bpf_prog_info info = {};
		unsigned int bytes = sizeof(info);

		if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &bytes))
			continue;
		printf("%s\"%s\": {\"runs\": %llu, \"ns\": %llu}", separator, bpf_program__name(program), info.run_cnt, info.run_time_ns);
		separator = ", ";
	}
	printf("}");
}

int main(int count, char **words)
{
	struct tracer_bpf *tracer;
	struct ring_buffer *ring;
	FILE *file;
	int statistics;

	if (count < 3 || !(file = fopen(words[1], "wb"))) {
		fprintf(stderr, "usage: tracer FILE INODE...\n");
		return 2;
	}
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	signal(SIGINT, end);
	signal(SIGTERM, end);
	statistics = bpf_enable_stats(BPF_STATS_RUN_TIME);
	tracer = tracer_bpf__open_and_load();
	if (!tracer) {
		fprintf(stderr, "cannot load the tracer: %s\n", strerror(errno));
		return CANNOT_TRACE;
	}
	for (int i = 2; i < count; i++) {
		unsigned int inode = strtoul(words[i], NULL, 10);
		unsigned char yes = 1;

		bpf_map__update_elem(tracer->maps.namespaces, &inode, sizeof(inode), &yes, sizeof(yes), BPF_ANY);
	}
	ring = ring_buffer__new(bpf_map__fd(tracer->maps.records), write_record, file, NULL);
	if (!ring || tracer_bpf__attach(tracer)) {
		fprintf(stderr, "cannot attach the tracer: %s\n", strerror(errno));
		return CANNOT_TRACE;
	}
	printf("{\"ready\": true, \"clock_offset_ns\": %lld}\n", clock_offset_ns());
	fflush(stdout);
	while (!ended) {
		int done = ring_buffer__poll(ring, POLL_MS);

		if (done < 0 && done != -EINTR) {
			fprintf(stderr, "cannot write the records: %s\n", strerror(-done));
			return 1;
		}
	}
	tracer_bpf__detach(tracer);
	if (ring_buffer__consume(ring) < 0 || fclose(file)) {
		fprintf(stderr, "cannot write the records: %s\n", strerror(errno));
		return 1;
	}
	printf("{\"ready\": false, \"clock_offset_ns\": %lld, \"lost_records\": %llu, ", clock_offset_ns(), tracer->bss->lost);
	print_costs(tracer);
	printf("}\n");
	ring_buffer__free(ring);
	tracer_bpf__destroy(tracer);
	if (statistics >= 0)
		close(statistics);
	return 0;
}
