/*
 * test/sanitizers.c
 *		Loaded into a server before AddressSanitizer and UndefinedBehaviorSanitizer: their options.
 *		For make sanitize.
 *
 * Options from the environment would not do: a server process overwrites its environment with its
 * title, and UndefinedBehaviorSanitizer reads it only when it has something to report.
 */
#define _GNU_SOURCE
#include <dlfcn.h>

/*
 * What the server keeps until it ends is no leak, and it has its own answer when there is no
 * memory.
 */
const char *
__asan_default_options(void)
{
	return "detect_leaks=0:detect_stack_use_after_return=0:allocator_may_return_null=1:"
		"verify_asan_link_order=0";
}

const char *
__ubsan_default_options(void)
{
	return "print_stacktrace=1";
}

/*
 * Each library calls the first function of this name, which is the other's for one of them.  So
 * neither does.
 */
void
__sanitizer_set_report_path(const char *path)
{
}

static void
report_to(const char *library, const char *path)
{
	void	   *handle = dlopen(library, RTLD_LAZY);

	((void (*) (const char *)) dlsym(handle, "__sanitizer_set_report_path")) (path);
}

__attribute__((constructor)) static void
set_paths(void)
{
	report_to(ASAN, REPORTS "/address");
	report_to(UBSAN, REPORTS "/undefined");
}

/*
 * Before AddressSanitizer is ready, a library of Debian's server (libgpg-error) calls this.  The C
 * library's, which holds the lock on translations, calls malloc(): AddressSanitizer makes itself
 * ready there, asks for a translation, and hangs.
 */
char *
bindtextdomain(const char *domain, const char *directory)
{
	return 0;
}
