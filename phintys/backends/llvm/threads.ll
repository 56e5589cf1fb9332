; Run %count tasks, each in a thread of its own but for the first.  Row k of %rows, of %size bytes,
; is given to task k, which leaves its status at the start.  %handles has two words a thread: the
; handle, and whether the thread was made; where it could not be made the task runs here.
; The result is 0 if all statuses are.
define internal i64 @phintys.parallel(ptr %task, ptr %rows, i64 %size, i64 %count, ptr %handles) nounwind {
entry:
  br label %make
make:
  %k = phi i64 [1, %entry], [%k.next, %made]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %create, label %own
create:
  %offset = mul i64 %k, %size
  %row = getelementptr i8, ptr %rows, i64 %offset
  %handle.offset = shl i64 %k, 4
  %handle = getelementptr i8, ptr %handles, i64 %handle.offset
  %error = call i32 @pthread_create(ptr %handle, ptr null, ptr %task, ptr %row)
  %failed = icmp ne i32 %error, 0
  %flag = getelementptr i8, ptr %handle, i64 8
  %started = zext i1 %failed to i64
  store i64 %started, ptr %flag
  br i1 %failed, label %here, label %made
here:
  %ignored = call ptr %task(ptr %row)
  br label %made
made:
  %k.next = add i64 %k, 1
  br label %make
own:
  %done = call ptr %task(ptr %rows)
  br label %wait
wait:
  %j = phi i64 [0, %own], [%j.next, %next]
  %status = phi i64 [0, %own], [%status.next, %next]
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
  ret i64 %status
}
