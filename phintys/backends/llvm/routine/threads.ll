; Run %count tasks, each in a thread of its own but for the first.  Row k of %rows, of %size bytes,
; is given to task k, which leaves its status at the start.  %handles has two words a thread: the
; handle, and whether the thread was made; where it could not be made the task runs here.
; The result is 0 if all statuses are and no signal has stopped them.
;
; What the threads share: whether to stop, how many tasks are not done, the task, and a lock that is
; held until all tasks are done.  The calling thread waits for it, and handles signals meanwhile.
define internal i64 @phintys.parallel(ptr %task, ptr %rows, i64 %size, i64 %count, ptr %handles) nounwind {
entry:
  %shared = alloca [4 x i64], align 8
  %undone = getelementptr i64, ptr %shared, i64 1
  %task.at = getelementptr i64, ptr %shared, i64 2
  %lock.at = getelementptr i64, ptr %shared, i64 3
  store i64 0, ptr %shared
  store i64 1, ptr %undone
  store ptr %task, ptr %task.at
  %lock = call ptr @PyThread_allocate_lock()
  store ptr %lock, ptr %lock.at
  %none = icmp eq ptr %lock, null
  %made = select i1 %none, i64 1, i64 %count
  br i1 %none, label %make, label %hold
hold:
  %held = call i32 @PyThread_acquire_lock_timed(ptr %lock, i64 -1, i32 0)
  br label %make
make:
  %k = phi i64 [1, %entry], [1, %hold], [%k.next, %started], [%k.next, %here]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %row, label %own
row:
  %offset = mul i64 %k, %size
  %row.at = getelementptr i8, ptr %rows, i64 %offset
  %handle.offset = shl i64 %k, 4
  %handle = getelementptr i8, ptr %handles, i64 %handle.offset
  %flag = getelementptr i8, ptr %handle, i64 8
  store i64 1, ptr %flag
  %k.next = add i64 %k, 1
  %possible = icmp slt i64 %k, %made
  br i1 %possible, label %create, label %here
create:
  store ptr %shared, ptr %row.at
  %before = atomicrmw add ptr %undone, i64 1 seq_cst
  %error = call i32 @pthread_create(ptr %handle, ptr null, ptr @phintys.part, ptr %row.at)
  %failed = icmp ne i32 %error, 0
  br i1 %failed, label %alone, label %started
alone:
  %after = atomicrmw sub ptr %undone, i64 1 seq_cst
  br label %here
started:
  store i64 0, ptr %flag
  br label %make
here:
  %ignored = call ptr %task(ptr %row.at)
  br label %make
own:
  %done = call ptr %task(ptr %rows)
  %own.status = load i64, ptr %rows
  store atomic i64 %own.status, ptr %shared monotonic, align 8
  %left = atomicrmw sub ptr %undone, i64 1 seq_cst
  %last = icmp eq i64 %left, 1
  br i1 %last, label %wait, label %sleep
sleep:
  %answer = call i32 @PyThread_acquire_lock_timed(ptr %lock, i64 100000, i32 0)
  %ready = icmp eq i32 %answer, 1
  br i1 %ready, label %wait, label %ask
ask:
  %raised = call preserve_mostcc i64 @phintys_poll()
  %quiet = icmp eq i64 %raised, 0
  br i1 %quiet, label %sleep, label %stop
stop:
  store atomic i64 1, ptr %shared monotonic, align 8
  br label %sleep
wait:
  %j = phi i64 [0, %own], [0, %sleep], [%j.next, %next]
  %status = phi i64 [0, %own], [0, %sleep], [%status.next, %next]
  %waiting = icmp slt i64 %j, %count
  br i1 %waiting, label %look, label %out
look:
  %j.handle.offset = shl i64 %j, 4
  %j.handle = getelementptr i8, ptr %handles, i64 %j.handle.offset
  %j.flag.at = getelementptr i8, ptr %j.handle, i64 8
  %first = icmp eq i64 %j, 0
  %j.flag = load i64, ptr %j.flag.at
  %j.here = icmp ne i64 %j.flag, 0
  %j.skip = select i1 %first, i1 true, i1 %j.here
  br i1 %j.skip, label %next, label %join
join:
  %thread = load i64, ptr %j.handle
  %joined = call i32 @pthread_join(i64 %thread, ptr null)
  br label %next
next:
  %j.offset = mul i64 %j, %size
  %j.row = getelementptr i8, ptr %rows, i64 %j.offset
  %j.status = load i64, ptr %j.row
  %status.next = or i64 %status, %j.status
  %j.next = add i64 %j, 1
  br label %wait
out:
  %stopped = load i64, ptr %shared
  %result = or i64 %status, %stopped
  br i1 %none, label %return, label %free
free:
  call void @PyThread_free_lock(ptr %lock)
  br label %return
return:
  ret i64 %result
}

; What a thread runs: the task on its row, which holds the address of what the threads share.
define internal ptr @phintys.part(ptr %row) nounwind {
  %shared = load ptr, ptr %row
  %undone = getelementptr i64, ptr %shared, i64 1
  %task.at = getelementptr i64, ptr %shared, i64 2
  %lock.at = getelementptr i64, ptr %shared, i64 3
  %task = load ptr, ptr %task.at
  call void @phintys_stoppable(ptr %shared)
  %done = call ptr %task(ptr %row)
  %left = atomicrmw sub ptr %undone, i64 1 seq_cst
  %last = icmp eq i64 %left, 1
  br i1 %last, label %tell, label %out
tell:
  %lock = load ptr, ptr %lock.at
  call void @PyThread_release_lock(ptr %lock)
  br label %out
out:
  ret ptr null
}
